//! Approvals: decisions of a person about tool calls, and answers to the [`Question`]s of agents.
//!
//! | status    | means                                                         |
//! |-----------|---------------------------------------------------------------|
//! | `pending` | no decision yet                                               |
//! | `allowed` | the call may run                                              |
//! | `denied`  | the call may not run                                          |
//! | `expired` | no decision in time: the call may not run                     |
//! | `void`    | the task ended before a decision                              |

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::port::{BootTime, Rule};
use crate::{
    Answer, ApprovalDecided, ApprovalId, ApprovalRequested, Question, RawJson, TaskId, ToolCallId,
};

/// A decision about an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This call may run.
    AllowOnce,
    /// This call may run, and every call that its rule covers in this task.
    AllowTask,
    /// This call may run, and every call that its rule covers from now on.
    AllowAlways,
    /// This call may not run.
    Deny,
    /// No decision in time: the call may not run.
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

    /// Whether the decision grants the rule to the task.
    pub fn grants_rule(self) -> bool {
        match self {
            Self::AllowTask | Self::AllowAlways => true,
            Self::AllowOnce | Self::Deny | Self::Expire => false,
        }
    }
}

/// What a person decides about an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalReply {
    /// The decision.
    pub decision: Decision,
    /// What the model reads with it.
    pub comment: Option<String>,
    /// The answer to the question that was asked.
    pub answer: Option<Answer>,
}

impl ApprovalReply {
    /// A consent with this answer.
    pub fn answering(answer: Answer) -> Self {
        Self { decision: Decision::AllowOnce, comment: None, answer: Some(answer) }
    }
}

/// Status of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// No decision yet.
    Pending,
    /// The call may run.
    Allowed,
    /// The call may not run.
    Denied,
    /// No decision in time.
    Expired,
    /// The task ended before a decision.
    Void,
}

impl ApprovalStatus {
    /// The word in JSON.
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

/// An approval and its decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// Id of the task that made the call.
    pub task_id: TaskId,
    /// Id of the tool call.
    pub tool_call_id: ToolCallId,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments of the call, byte for byte.
    pub arguments: RawJson,
    /// Why the call needs approval.
    pub reason: String,
    /// Rule that `allow_task` and `allow_always` grant.
    pub rule: Rule,
    /// Time of the request.
    pub asked_at: DateTime<Utc>,
    /// Time after which the call counts as denied. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The same moment by a clock that cannot be set, for processes of the same machine. Absent: unknown.
    #[serde(skip)]
    pub boot_until: Option<BootTime>,
    /// What the person is asked. Absent: whether the call may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Status of the approval.
    pub status: ApprovalStatus,
    /// The decision. Absent while pending or void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Name of the person or program that decided. Absent while pending or void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Time of the decision. Absent while pending or void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
    /// The answer to the question. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

impl Approval {
    /// An approval that was just requested.
    pub fn requested(task_id: TaskId, request: &ApprovalRequested, at: DateTime<Utc>) -> Self {
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
            boot_until: request.boot_until,
            question: request.question.clone(),
            status: ApprovalStatus::Pending,
            decision: None,
            by: None,
            decided_at: None,
            answer: None,
        }
    }

    /// Records the decision.
    pub fn decide(&mut self, decided: &ApprovalDecided, at: DateTime<Utc>) {
        self.status = decided.decision.into();
        self.decision = Some(decided.decision);
        self.by = Some(decided.by.clone());
        self.answer.clone_from(&decided.answer);
        self.decided_at = Some(at);
    }
}
