//! Events: entries of the journal, in the one JSON form that watchers, `--json` and replay
//! share.
//!
//! ```json
//! {"v":1,"position":7,"task_id":"…","seq":3,"at":"2026-02-18T12:00:00Z",
//!  "type":"state_changed","data":{"agent_id":"…","from":"idle","to":"thinking"}}
//! ```
//!
//! `position` orders the whole journal, `seq` the events of one task; both count from 1 without
//! a gap. `v` is raised when an existing event changes its meaning; an event of a later version
//! or of an unknown type is refused, never guessed at.
//!
//! | file         | subject                                                 |
//! |--------------|---------------------------------------------------------|
//! | `body`       | all events                                              |
//! | `properties` | what code asks about any event                          |
//! | `defaults`   | fields that the JSON leaves out                         |
//! | `outage_wait` | the wait of a task in an outage                        |
//! | `summary`    | the rows of the journal's index, folded from the events |
//! | `peer_wait`  | the wait of a task on a peer                            |
//! | `peer_tasks` | tasks on a peer, as they are listed here                |
//!
//! # To add an event
//!
//! Add it to the list in `event/body.rs`, its fields to a file of `event/body/`, and it to the matches in `event/properties.rs`. Code that
//! handles only some events matches them with `if let` or `_`, or implements [`EventVisitor`]: it does not
//! change.

mod body;
mod defaults;
mod outage_wait;
pub(crate) mod peer_tasks;
mod peer_wait;
mod properties;
pub(crate) mod summary;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::TaskId;

pub use body::{
    ApprovalDecided, ApprovalRequested, Awaited, Awaiting, BudgetRaised, Compacted, Dispatched,
    EventBody, EventVisitor, HandedOver, HistoryRef, ImportedTimes, MessageAppended, MessageQueued,
    OutputRejected, PeerCancel, Purpose, Relayed, Replied, RequestSent, StateChanged,
    StatusChanged, TaskCreated, TaskRestored, TodoChanged, ToolRefused, ToolRequested, ToolStarted,
    UsageRecorded, WaitingFor,
};

pub use outage_wait::{OutageWait, PEER_UNAVAILABLE};
pub use peer_wait::PeerWait;

/// The version of the event format.
pub const EVENT_VERSION: u32 = 1;

/// Position of an event in the whole journal, from 1. 0 is before the first event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Position(pub u64);

/// Number of an event among the events of its task, from 1. 0 is before the first event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Position in the whole journal.
    pub position: Position,
    /// Id of the task the event belongs to.
    pub task_id: TaskId,
    /// Number among the events of the task.
    pub seq: Seq,
    /// Time of the append that wrote the event.
    pub at: DateTime<Utc>,
    /// What happened.
    pub body: EventBody,
}

/// Why a JSON value cannot be read as an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A later Antiphon wrote it: use that version.
    #[error("event version {found} is newer than this program knows ({EVENT_VERSION})")]
    UnknownVersion {
        /// Version of the event.
        found: u32,
    },
    /// A later Antiphon wrote it, or another program.
    #[error("unknown event type `{found}`, expected one of {}", EventBody::TYPES.join(", "))]
    UnknownType {
        /// Type of the event.
        found: String,
    },
    /// The type is known, but its data is not valid.
    #[error("malformed `{event_type}` event: {reason}")]
    Malformed {
        /// Type of the event.
        event_type: String,
        /// Which field is wrong, and why.
        reason: String,
    },
}

#[derive(Serialize)]
struct EventOut<'a> {
    v: u32,
    position: Position,
    task_id: &'a TaskId,
    seq: Seq,
    at: DateTime<Utc>,
    #[serde(rename = "type")]
    event_type: &'static str,
    data: &'a EventBody,
}

#[derive(Deserialize)]
struct EventIn {
    v: u32,
    position: Position,
    task_id: TaskId,
    seq: Seq,
    at: DateTime<Utc>,
    #[serde(rename = "type")]
    event_type: String,
    data: Box<RawValue>,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EventOut {
            v: EVENT_VERSION,
            position: self.position,
            task_id: &self.task_id,
            seq: self.seq,
            at: self.at,
            event_type: self.body.event_type(),
            data: &self.body,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = EventIn::deserialize(deserializer)?;
        if wire.v > EVENT_VERSION {
            return Err(de::Error::custom(EventError::UnknownVersion { found: wire.v }));
        }
        let body =
            EventBody::parse(&wire.event_type, wire.data.get()).map_err(de::Error::custom)?;
        Ok(Self {
            position: wire.position,
            task_id: wire.task_id,
            seq: wire.seq,
            at: wire.at,
            body,
        })
    }
}
