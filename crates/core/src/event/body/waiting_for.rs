//! Why a task does not go on.

use serde::{Deserialize, Serialize};

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// The decision about a tool call.
    Approval,
    /// A user resumes the task.
    Resume,
    /// The client that offered a tool sends the result of a call.
    ToolResult,
    /// A new day or month begins, or a user raises the spend limit.
    Budget,
    /// The model can be reached again. The status is `running`, and the detail is a
    /// [`OutageWait`](crate::OutageWait).
    Model,
    /// The peer that runs the task can be reached again. Status and detail are as for `Model`.
    Peer,
    /// The journal can be written again. Never recorded, since it cannot be: the orchestrator that runs the task says
    /// so in its lists.
    Storage,
}

impl WaitingFor {
    /// Whether the task continues without a person or a client.
    pub fn continues_by_itself(self) -> bool {
        match self {
            Self::Budget | Self::Model | Self::Peer | Self::Storage => true,
            Self::Approval | Self::Resume | Self::ToolResult => false,
        }
    }

    /// Whether a running task waits for the end of an outage that is recorded.
    pub fn is_outage(self) -> bool {
        match self {
            Self::Model | Self::Peer => true,
            Self::Approval | Self::Resume | Self::ToolResult | Self::Budget | Self::Storage => {
                false
            }
        }
    }
}
