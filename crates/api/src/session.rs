//! Sessions: listed, read, imported, forked.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::{Message, SessionId, SessionSummary, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "schema")]
use crate::task::LISTED_MAX;

/// Which page of the sessions to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionsQuery"))]
pub struct SessionQuery {
    /// Number of sessions, at most; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
    /// `next_cursor` of the previous page; the first page when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<TaskId>,
}

/// One page of the sessions of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sessions"))]
pub struct SessionList {
    /// Sessions; the one with the newest task first.
    pub sessions: Vec<SessionSummary>,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<TaskId>,
}

/// One session with its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Session"))]
pub struct SessionDetail {
    /// The session.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// System prompt of its last task.
    pub system_prompt: String,
    /// Messages in order, in the form of the session file.
    pub messages: Vec<Arc<Message>>,
}

/// A session that is durable in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionImported {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the task that holds its messages.
    pub task_id: TaskId,
}

/// A session file (version 1).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionFile"))]
#[serde(transparent)]
pub struct SessionFile(
    /// The file, byte for byte.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub Box<RawValue>,
);
