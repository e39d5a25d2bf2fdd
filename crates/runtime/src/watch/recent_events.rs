//! The latest events of a followed task, so that many followers share one read and one serialization.
//!
//! Events never change, and those of one task are numbered without a gap: an event here is the event of
//! the journal with that number. Events that are not here are read from the journal.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::Appended;
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use chrono::{DateTime, Utc};

use crate::watch::serialized::SerializedEvent;

/// Maximum number of events of one task; the oldest are dropped first.
const RECENT_EVENTS_MAX: usize = 1024;

/// Maximum bytes of JSON of one task; the oldest events are dropped first.
const RECENT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum bytes of JSON of all tasks. Further events are not kept.
const RECENT_ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Memory used by all tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryBudget(Arc<AtomicUsize>);

impl MemoryBudget {
    /// Reserves memory, if there is some left.
    fn take(&self, bytes: usize) -> bool {
        let room =
            |used: usize| used.checked_add(bytes).filter(|used| *used <= RECENT_ALL_BYTES_MAX);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The latest events of one task, in order and without a gap.
#[derive(Debug)]
pub(crate) struct RecentEvents {
    budget: MemoryBudget,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    events: VecDeque<Arc<SerializedEvent>>,
    bytes: usize,
}

impl RecentEvents {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { budget: budget.clone(), cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events that were just recorded. After a gap the older events are dropped; events that come
    /// out of order are left to the journal.
    pub(crate) fn add(&self, events: Vec<Event>) {
        let mut cache = self.cache();
        for event in events {
            let next = cache.events.back().map(|last| Seq(last.value().seq.0 + 1));
            match next {
                Some(next) if event.seq < next => continue,
                Some(next) if event.seq > next => cache.clear(&self.budget),
                Some(_) | None => {}
            }
            let event = Arc::new(SerializedEvent::new(event));
            let Ok(bytes) = event.json().map(str::len) else { return cache.clear(&self.budget) };
            if !self.budget.take(bytes) {
                return cache.clear(&self.budget);
            }
            cache.bytes += bytes;
            cache.events.push_back(event);
            while cache.events.len() > RECENT_EVENTS_MAX || cache.bytes > RECENT_BYTES_MAX {
                cache.forget_first(&self.budget);
            }
        }
    }

    /// The events after `seq`, if they are here.
    pub(crate) fn after(&self, seq: Seq, events_max: usize) -> VecDeque<Arc<SerializedEvent>> {
        let cache = self.cache();
        let first = cache.events.front().map_or(Seq(u64::MAX), |first| first.value().seq);
        let Some(skipped) = (seq.0 + 1).checked_sub(first.0) else { return VecDeque::new() };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        cache.events.iter().skip(skipped).take(events_max).cloned().collect()
    }
}

impl Drop for RecentEvents {
    fn drop(&mut self) {
        self.budget.release(self.cache().bytes);
    }
}

impl Cache {
    fn forget_first(&mut self, budget: &MemoryBudget) {
        if let Some(first) = self.events.pop_front() {
            let bytes = first.json_bytes();
            self.bytes -= bytes;
            budget.release(bytes);
        }
    }

    fn clear(&mut self, budget: &MemoryBudget) {
        budget.release(self.bytes);
        *self = Self::default();
    }
}

/// The events of an append.
pub(crate) fn events_of(
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
