//! Plan mode: a task that changes nothing before a person has accepted its plan.

use serde::{Deserialize, Serialize};

/// What a task may do within its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskAccess {
    /// What its permissions allow.
    #[default]
    Permitted,
    /// It reads only, until a person accepts its plan.
    PlanFirst,
    /// It reads only: a task dispatched it that reads only.
    ReadOnly,
    /// It only shortens the conversation that it continues, and ends with the summary.
    CompactOnly,
}

impl TaskAccess {
    /// Whether this is what the permissions allow.
    pub fn is_permitted(&self) -> bool {
        match self {
            Self::Permitted => true,
            Self::PlanFirst | Self::ReadOnly | Self::CompactOnly => false,
        }
    }

    /// The access of a task that one with this access dispatches.
    #[must_use]
    pub fn of_child(self) -> Self {
        match self {
            Self::Permitted => Self::Permitted,
            Self::PlanFirst | Self::ReadOnly | Self::CompactOnly => Self::ReadOnly,
        }
    }
}

/// The latest plan of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The plan: as the agent wrote it, or as the person who accepted it changed it.
    pub text: String,
    /// What became of it.
    pub status: PlanStatus,
    /// What the person said about it. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// What became of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// It waits for a person.
    Proposed,
    /// The task carries it out.
    Accepted,
    /// The agent writes another one.
    Rejected,
}

impl PlanStatus {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}
