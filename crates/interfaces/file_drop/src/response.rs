//! The response to a request, in the file `<name>.response.json` next to it, which `folder/requester_folder.rs` writes.

use antiphon_core::{InteractionId, OrderResult, OrderStatus, TaskId};
use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Largest `result` of a response, in bytes. A larger one is omitted, and `resultOmitted` is set:
/// read it from the task.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Largest response that is read.
pub(crate) const RESPONSE_BYTES_MAX: usize = RESULT_BYTES_MAX + 64 * 1024;

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// Name of the request's file.
    pub request: String,
    /// The request's `id`; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Digest of the request's content; absent when it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Identifies the file: a file that is renamed is not a new request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the order was executed.
    pub ok: bool,
    /// What the order did; absent when `ok` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<OrderStatus>,
    /// Name of the agent concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the task that was created, stopped or canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Id of the interaction that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_id: Option<InteractionId>,
    /// The result of a task, if the request waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The result is larger than [`RESULT_BYTES_MAX`] bytes: read it from the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_omitted: bool,
    /// Why the order was not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResponseError>,
    /// Path of the rejected file, relative to the requester's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// When the response was written.
    pub time: DateTime<Utc>,
}

/// Why a request was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseError {
    /// For programs: `INVALID_REQUEST`, `FORBIDDEN`, `NOT_FOUND`, `CONFLICT`, …
    pub code: String,
    /// For people: what is wrong and what to do next.
    pub message: String,
}

/// The fields of a response that identify its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRef {
    pub(crate) request: String,
    pub(crate) id: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) file: Option<String>,
}

impl Response {
    /// The response to an executed order.
    pub(crate) fn done(request: RequestRef, done: OrderResult) -> Self {
        let too_large = |value: &Value| {
            serde_json::to_vec(value).map_or(true, |text| text.len() > RESULT_BYTES_MAX)
        };
        let result_omitted = done.result.as_ref().is_some_and(too_large);
        Self {
            status: Some(done.status),
            agent: done.agent,
            task_id: done.task_id,
            interaction_id: done.interaction_id,
            result: done.result.filter(|_| !result_omitted),
            result_omitted,
            ok: true,
            ..Self::failed(request, None)
        }
    }

    /// The response to a refused order.
    pub(crate) fn failed(request: RequestRef, error: Option<ResponseError>) -> Self {
        let RequestRef { request, id, digest, file } = request;
        Self {
            request,
            id,
            digest,
            file,
            ok: false,
            status: None,
            agent: None,
            task_id: None,
            interaction_id: None,
            result: None,
            result_omitted: false,
            error,
            set_aside: None,
            time: Utc::now().trunc_subsecs(3),
        }
    }
}
