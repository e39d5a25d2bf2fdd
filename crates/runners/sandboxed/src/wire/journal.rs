//! Questions to the journal as they travel, and its answers.
//!
//! There is no key among them, and no creation: a worker writes behind what is there of one task.

use std::num::NonZeroUsize;

use antiphon_core::port::{Append, Appended, Expected, HistoryExtent, Page, Read};
use antiphon_core::{Event, EventBody, EventError, HistoryRef, Position, Seq, TaskId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendWire {
    pub(crate) task_id: TaskId,
    pub(crate) behind: Seq,
    /// Also behind what arrived since.
    #[serde(default)]
    pub(crate) or_arrivals: bool,
    pub(crate) at: DateTime<Utc>,
    pub(crate) events: Vec<EventWire>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventWire {
    #[serde(rename = "type")]
    event_type: String,
    data: Box<RawValue>,
}

impl EventWire {
    pub(crate) fn of(body: &EventBody) -> Result<Self, serde_json::Error> {
        let data = serde_json::value::to_raw_value(body)?;
        Ok(Self { event_type: body.event_type().to_owned(), data })
    }
}

impl TryFrom<AppendWire> for Append {
    type Error = EventError;

    fn try_from(wire: AppendWire) -> Result<Self, EventError> {
        let body = |event: &EventWire| EventBody::parse(&event.event_type, event.data.get());
        Ok(Self {
            task_id: wire.task_id,
            expected: if wire.or_arrivals {
                Expected::AtOrArrivals(wire.behind)
            } else {
                Expected::At(wire.behind)
            },
            at: wire.at,
            events: wire.events.iter().map(body).collect::<Result<_, _>>()?,
            key: None,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendedWire {
    position: Position,
    seq: Seq,
}

impl From<Appended> for AppendedWire {
    fn from(appended: Appended) -> Self {
        Self { position: appended.position, seq: appended.seq }
    }
}

impl AppendedWire {
    pub(crate) fn to(self, task_id: TaskId) -> Appended {
        Appended { task_id, position: self.position, seq: self.seq, deduplicated: false }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadWire {
    pub(crate) task_id: TaskId,
    pub(crate) after: Position,
    pub(crate) limit: NonZeroUsize,
}

impl From<ReadWire> for Read {
    fn from(wire: ReadWire) -> Self {
        Self { task_id: Some(wire.task_id), after: wire.after, limit: wire.limit }
    }
}

/// A page; the runner writes its events as text that it has made already.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageWire<E> {
    pub(crate) events: Vec<E>,
    pub(crate) next: Position,
    pub(crate) head: Position,
}

impl From<PageWire<Event>> for Page {
    fn from(wire: PageWire<Event>) -> Self {
        Self { events: wire.events, next: wire.next, head: wire.head }
    }
}

/// Which part of which conversation is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryWire {
    pub(crate) until: HistoryRef,
    pub(crate) extent: ExtentWire,
    /// Number of events that the worker has already.
    pub(crate) skip: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExtentWire {
    All,
    Recent,
}

impl From<HistoryExtent> for ExtentWire {
    fn from(extent: HistoryExtent) -> Self {
        match extent {
            HistoryExtent::All => Self::All,
            HistoryExtent::Recent => Self::Recent,
        }
    }
}

impl From<ExtentWire> for HistoryExtent {
    fn from(extent: ExtentWire) -> Self {
        match extent {
            ExtentWire::All => Self::All,
            ExtentWire::Recent => Self::Recent,
        }
    }
}

/// Events of a conversation, as many as fit into a frame.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryPageWire<E> {
    /// Index of the first message of all pages.
    pub(crate) first: u64,
    pub(crate) events: Vec<E>,
    /// Number of events of all pages.
    pub(crate) total: usize,
}

/// Which tasks are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskScope {
    /// Its own.
    Own,
    /// All of its tree.
    Tree,
}
