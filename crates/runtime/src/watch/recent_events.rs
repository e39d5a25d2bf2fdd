//! The latest events of a followed task, so that many followers share one read and one serialization.
//!
//! Events never change, and those of one task are numbered without a gap: an event here is the event of
//! the journal with that number. Events that are not here are read from the journal.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use antiphon_core::port::Appended;
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use chrono::{DateTime, Utc};

/// Maximum number of events of one task; the oldest are dropped first.
const TAIL_EVENTS_MAX: usize = 1024;

/// Maximum bytes of JSON of one task; the oldest events are dropped first.
const TAIL_BYTES_MAX: usize = 1024 * 1024;

/// Maximum bytes of JSON of all tasks. Further events are not kept.
const TAILS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An event of the journal, serialized once for all followers.
#[derive(Debug)]
pub struct SerializedEvent {
    event: Event,
    json: OnceLock<String>,
}

impl SerializedEvent {
    pub(crate) fn new(event: Event) -> Self {
        Self { event, json: OnceLock::new() }
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The event as JSON, serialized on first use.
    pub fn json(&self) -> Result<&str, serde_json::Error> {
        if let Some(json) = self.json.get() {
            return Ok(json);
        }
        let json = serde_json::to_string(&self.event)?;
        Ok(self.json.get_or_init(|| json))
    }

    /// The event, cloned when it is shared.
    pub(crate) fn into_event(told: Arc<Self>) -> Event {
        Arc::try_unwrap(told).map_or_else(|told| told.event.clone(), |told| told.event)
    }
}

/// Memory used by all tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// Reserves memory, if there is some left.
    fn take(&self, bytes: usize) -> bool {
        let room = |kept: usize| kept.checked_add(bytes).filter(|kept| *kept <= TAILS_BYTES_MAX);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The latest events of one task, in order and without a gap.
#[derive(Debug)]
pub(crate) struct Tail {
    budget: Budget,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<SerializedEvent>>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events that were just recorded. After a gap the older events are dropped; events that come
    /// out of order are left to the journal.
    pub(crate) fn keep(&self, events: Vec<Event>) {
        let mut kept = self.kept();
        for event in events {
            let next = kept.events.back().map(|last| Seq(last.event.seq.0 + 1));
            match next {
                Some(next) if event.seq < next => continue,
                Some(next) if event.seq > next => kept.clear(&self.budget),
                Some(_) | None => {}
            }
            let told = Arc::new(SerializedEvent::new(event));
            let Ok(bytes) = told.json().map(str::len) else { return kept.clear(&self.budget) };
            if !self.budget.take(bytes) {
                return kept.clear(&self.budget);
            }
            kept.bytes += bytes;
            kept.events.push_back(told);
            while kept.events.len() > TAIL_EVENTS_MAX || kept.bytes > TAIL_BYTES_MAX {
                kept.forget_first(&self.budget);
            }
        }
    }

    /// The events after `seq`, if they are here.
    pub(crate) fn behind(&self, seq: Seq, events_max: usize) -> VecDeque<Arc<SerializedEvent>> {
        let kept = self.kept();
        let first = kept.events.front().map_or(Seq(u64::MAX), |first| first.event.seq);
        let Some(skipped) = (seq.0 + 1).checked_sub(first.0) else { return VecDeque::new() };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        kept.events.iter().skip(skipped).take(events_max).cloned().collect()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.budget.give_back(self.kept().bytes);
    }
}

impl Kept {
    fn forget_first(&mut self, budget: &Budget) {
        if let Some(first) = self.events.pop_front() {
            let bytes = first.json.get().map_or(0, String::len);
            self.bytes -= bytes;
            budget.give_back(bytes);
        }
    }

    fn clear(&mut self, budget: &Budget) {
        budget.give_back(self.bytes);
        *self = Self::default();
    }
}

/// The events of an append.
pub(crate) fn written(
    appended: &Appended,
    task_id: &TaskId,
    at: DateTime<Utc>,
    bodies: Vec<EventBody>,
) -> Vec<Event> {
    let before = bodies.len() as u64;
    let (position, seq) = (appended.position.0 - before, appended.seq.0 - before);
    let event = |(index, body)| Event {
        position: Position(position + index),
        task_id: task_id.clone(),
        seq: Seq(seq + index),
        at,
        body,
    };
    (1..).zip(bodies).map(event).collect()
}
