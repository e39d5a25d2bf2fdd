//! Approvals: questions to a person, kept until they are answered.
//!
//! | status    | means                                                         |
//! |-----------|---------------------------------------------------------------|
//! | `pending` | nobody has answered                                           |
//! | `allowed` | the call may run                                              |
//! | `denied`  | it may not                                                    |
//! | `expired` | nobody answered in time: it may not                           |
//! | `void`    | its task ended first                                          |

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::port::Rule;
use crate::{ApprovalDecided, ApprovalId, ApprovalRequested, RawJson, TaskId, ToolCallId};

/// An answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This call may run.
    AllowOnce,
    /// This call may run, and what its rule covers, in this task.
    AllowTask,
    /// This call may run, and what its rule covers, from now on.
    AllowAlways,
    /// It may not.
    Deny,
    /// Nobody answered in time.
    Expire,
}

impl Decision {
    /// Whether the call may run.
    pub fn allows(self) -> bool {
        match self {
            Self::AllowOnce | Self::AllowTask | Self::AllowAlways => true,
            Self::Deny | Self::Expire => false,
        }
    }

    /// Whether more than this one call is allowed to its task.
    pub fn grants_rule(self) -> bool {
        match self {
            Self::AllowTask | Self::AllowAlways => true,
            Self::AllowOnce | Self::Deny | Self::Expire => false,
        }
    }
}

/// How far an approval got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Nobody has answered.
    Pending,
    /// The call may run.
    Allowed,
    /// It may not.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// Its task ended first.
    Void,
}

impl ApprovalStatus {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Void => "void",
        }
    }
}

impl From<Decision> for ApprovalStatus {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::AllowOnce | Decision::AllowTask | Decision::AllowAlways => Self::Allowed,
            Decision::Deny => Self::Denied,
            Decision::Expire => Self::Expired,
        }
    }
}

/// A question to a person, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// Which.
    pub approval_id: ApprovalId,
    /// Whose call it is.
    pub task_id: TaskId,
    /// Which call.
    pub tool_call_id: ToolCallId,
    /// Which tool.
    pub tool_name: String,
    /// With what.
    pub arguments: RawJson,
    /// Why it is asked.
    pub reason: String,
    /// What would be allowed beyond this call.
    pub rule: Rule,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When the answer is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// What became of it.
    pub status: ApprovalStatus,
    /// The answer itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
}

impl Approval {
    /// A question that has just been asked.
    pub fn asked(task_id: TaskId, request: &ApprovalRequested, at: DateTime<Utc>) -> Self {
        Self {
            approval_id: request.approval_id.clone(),
            task_id,
            tool_call_id: request.tool_call_id.clone(),
            tool_name: request.tool_name.clone(),
            arguments: request.arguments.clone(),
            reason: request.reason.clone(),
            rule: request.rule.clone(),
            asked_at: at,
            expires_at: request.expires_at,
            status: ApprovalStatus::Pending,
            decision: None,
            by: None,
            decided_at: None,
        }
    }

    /// Adds the answer.
    pub fn decide(&mut self, decided: &ApprovalDecided, at: DateTime<Utc>) {
        self.status = decided.decision.into();
        self.decision = Some(decided.decision);
        self.by = Some(decided.by.clone());
        self.decided_at = Some(at);
    }
}
