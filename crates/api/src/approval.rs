//! Approvals: questions to a person, and their decisions.

use antiphon_core::{Approval, Decision};
use serde::{Deserialize, Serialize};

/// Which approvals to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ListQuery"))]
pub struct ApprovalQuery {
    /// Also approvals that are decided; only pending ones when absent.
    #[serde(default)]
    pub all: bool,
}

/// Approvals of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Approvals"))]
pub struct ApprovalList {
    /// Approvals, oldest first.
    pub approvals: Vec<Approval>,
}

/// The decision of one approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Deciding"))]
pub struct DecideApproval {
    /// Any decision but `expire`, which only the server's clock makes.
    pub decision: Decision,
    /// Reason, which the model reads when the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
