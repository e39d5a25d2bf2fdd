//! Approvals: questions to a person, and their decisions.

use std::num::NonZeroUsize;

use antiphon_core::{Answer, Approval, ApprovalId, ApprovalReply, Decision};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::task::LISTED_MAX;

/// Which approvals to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ListQuery"))]
pub struct ApprovalQuery {
    /// Also approvals that are decided; only pending ones when absent.
    #[serde(default)]
    pub all: bool,
    /// Number of approvals, at most; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
    /// `next_cursor` of the previous page; the first page when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<ApprovalId>,
}

/// One page of the approvals of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Approvals"))]
pub struct ApprovalList {
    /// Approvals, oldest first.
    pub approvals: Vec<Approval>,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ApprovalId>,
}

impl From<DecideApproval> for ApprovalReply {
    fn from(DecideApproval { decision, comment, answer }: DecideApproval) -> Self {
        Self { decision, comment, answer }
    }
}

impl From<ApprovalReply> for DecideApproval {
    fn from(ApprovalReply { decision, comment, answer }: ApprovalReply) -> Self {
        Self { decision, comment, answer }
    }
}

/// The decision of one approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecideApproval {
    /// Any decision but `expire`, which only the server's clock makes. `allow_once` answers a question and accepts a plan.
    pub decision: Decision,
    /// Reason, which the model reads when the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The answer to a question, or the plan in place of the agent's own. Absent: the default, or the plan as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}
