//! What is told about a request, in the file beside it: `<name>.response.json`.

use antiphon_core::{InteractionId, TaskId};
use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::orders::{Done, DoneStatus};

/// Largest `result` that a response holds, in bytes. A larger one is left out, and `resultOmitted`
/// says so: the task has it.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Largest response that is read.
pub(crate) const RESPONSE_BYTES_MAX: usize = RESULT_BYTES_MAX + 64 * 1024;

/// What is told about a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The name of the request's file.
    pub request: String,
    /// The request's own id, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What was in the file; absent when it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Which file it was: a file that is renamed is no new request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether it was carried out.
    pub ok: bool,
    /// What came of it, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DoneStatus>,
    /// The agent it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task that was made, or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The interaction that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_id: Option<InteractionId>,
    /// The result of a task that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The result has more than [`RESULT_BYTES_MAX`]: the task has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_omitted: bool,
    /// Why it was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResponseError>,
    /// Where the file is now, below its folder, if it was no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// When this was written.
    pub time: DateTime<Utc>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseError {
    /// For programs: `INVALID_REQUEST`, `FORBIDDEN`, `NOT_FOUND`, `CONFLICT`, …
    pub code: String,
    /// For people: what happened and what to do next.
    pub message: String,
}

/// The request that a response is to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct To {
    pub(crate) request: String,
    pub(crate) id: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) file: Option<String>,
}

impl Response {
    /// It was carried out.
    pub(crate) fn done(to: To, done: Done) -> Self {
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
            ..Self::failed(to, None)
        }
    }

    /// It was not.
    pub(crate) fn failed(to: To, error: Option<ResponseError>) -> Self {
        let To { request, id, digest, file } = to;
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
