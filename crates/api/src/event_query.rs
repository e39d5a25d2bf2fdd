//! Where a stream of events begins, and which events it has.

use antiphon_core::{Position, Seq, SessionId, TaskId};
use serde::{Deserialize, Serialize};

/// Where the events of one task begin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FromQuery"))]
pub struct TaskEventQuery {
    /// Only events after this `seq`; all events when absent. `Last-Event-ID` takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// Also live deltas of answers that are still streaming. They are not in the journal.
    #[serde(default)]
    pub deltas: bool,
}

/// Where the events of the whole journal begin, and which of them to send.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "JournalQuery"))]
pub struct JournalEventQuery {
    /// Only events after this `position`; only new events when absent. `Last-Event-ID` takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Position>,
    /// Only events of tasks of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only events of these types, separated by commas.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// Only events of tasks of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only events of this task, which has no parent, and of its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<TaskId>,
    /// Also live deltas of answers that are still streaming. They are not in the journal.
    #[serde(default)]
    pub deltas: bool,
}
