//! Where a stream of events begins, and which events it has; pages of events for a client that does not
//! wait for new ones.

use std::num::NonZeroUsize;

use antiphon_core::{Event, Position, Seq, SessionId, TaskId};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::task::LISTED_MAX;

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
    /// The client created the task with `followed`: a task that waits for its client since a restart of the server goes
    /// on.
    #[serde(default)]
    pub owner: bool,
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

/// Which events of the journal a page has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JournalPageQuery {
    /// Only events of this task; events of every task when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Only events after this `position`; from the first event when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Position>,
    /// Number of events, at most; 100 when absent. A page of large events has fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
}

/// Events of the journal that exist already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JournalPage {
    /// Events as in events.schema.json, in the order of their positions. Empty at the end.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")
    )]
    pub events: Vec<Event>,
    /// `after` of the next page.
    pub next: Position,
    /// Position of the last event of the whole journal.
    pub head: Position,
}
