//! Requests to agents: how far one got.

use std::num::NonZeroU32;

use antiphon_core::{InteractionId, Replied, ResponseStatus, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use crate::task::REST_WAIT_S_MAX;

/// How long the server waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitQuery"))]
pub struct RequestWaitQuery {
    /// Longest wait for the answer, in seconds; no wait when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = REST_WAIT_S_MAX)))]
    pub wait_s: Option<NonZeroU32>,
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It is queued in the inbox.
    Waiting,
    /// The agent has read it.
    Taken,
    /// The agent has announced that it answers later.
    Accepted,
    /// The agent has answered. Final.
    Completed,
    /// The agent has refused or failed, or its time was up. Final.
    Failed,
}

impl RequestState {
    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Waiting | Self::Taken | Self::Accepted => false,
        }
    }

    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Taken => "taken",
            Self::Accepted => "accepted",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A request, and how far it got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestStatus {
    /// Id of the request.
    pub id: InteractionId,
    /// How far it got.
    pub state: RequestState,
    /// Id of the task that answers it; absent once it is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The answer; absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl RequestStatus {
    /// The status of a request with this answer.
    pub fn answered(replied: Replied) -> Self {
        let state = match replied.status {
            ResponseStatus::Accepted => RequestState::Accepted,
            ResponseStatus::Completed => RequestState::Completed,
            ResponseStatus::Failed => RequestState::Failed,
        };
        let result = Some(replied.result);
        Self { id: replied.in_reply_to, state, task_id: None, result }
    }

    /// The status of a request without an answer.
    pub fn open(id: InteractionId, state: RequestState, task_id: TaskId) -> Self {
        Self { id, state, task_id: Some(task_id), result: None }
    }
}
