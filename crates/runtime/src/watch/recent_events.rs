//! The latest events of a followed task, or of a followed journal, so that many followers share one serialization and read nothing
//! back.
//!
//! Events never change. Those of one task are numbered without a gap by their seq, those of the journal by their position: an event
//! here is the event of the journal with that number. Events that are not here are read from the journal.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::Appended;
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use chrono::{DateTime, Utc};

use crate::watch::serialized::SerializedEvent;

/// Maximum number of events of one task or of the journal; the oldest are dropped first.
const RECENT_EVENTS_MAX: usize = 1024;

/// Maximum bytes of JSON of one task or of the journal; the oldest events are dropped first.
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

/// Which number of an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberedBy {
    /// Its number in its task.
    Seq,
    /// Its number in the journal.
    Position,
}

impl NumberedBy {
    fn number(self, event: &SerializedEvent) -> u64 {
        match self {
            Self::Seq => event.value().seq.0,
            Self::Position => event.value().position.0,
        }
    }
}

/// The latest events, by their number.
#[derive(Debug)]
pub(crate) struct RecentEvents {
    numbered_by: NumberedBy,
    budget: MemoryBudget,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// Appends of several tasks are acknowledged in any order: an event may come before one with a lower number.
    events: BTreeMap<u64, Arc<SerializedEvent>>,
    bytes: usize,
}

impl RecentEvents {
    pub(crate) fn new(numbered_by: NumberedBy, budget: &MemoryBudget) -> Self {
        Self { numbered_by, budget: budget.clone(), cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events that were just recorded.
    pub(crate) fn add(&self, events: &[Arc<SerializedEvent>]) {
        let mut cache = self.cache();
        for event in events {
            let Ok(bytes) = event.json().map(str::len) else { return cache.clear(&self.budget) };
            if !self.budget.take(bytes) {
                return cache.clear(&self.budget);
            }
            cache.bytes += bytes;
            let known = cache.events.insert(self.numbered_by.number(event), Arc::clone(event));
            if let Some(known) = known {
                cache.release(&known, &self.budget);
            }
            while cache.events.len() > RECENT_EVENTS_MAX || cache.bytes > RECENT_BYTES_MAX {
                let Some((_, first)) = cache.events.pop_first() else { break };
                cache.release(&first, &self.budget);
            }
        }
    }

    /// The events after a number, up to the first one that is not here.
    pub(crate) fn after(&self, number: u64, events_max: usize) -> VecDeque<Arc<SerializedEvent>> {
        let cache = self.cache();
        let first = number.saturating_add(1);
        let behind = cache.events.range(first..);
        let in_a_row = (first..).zip(behind).take_while(|(next, (found, _))| next == *found);
        in_a_row.take(events_max).map(|(_, (_, event))| Arc::clone(event)).collect()
    }
}

impl Drop for RecentEvents {
    fn drop(&mut self) {
        self.budget.release(self.cache().bytes);
    }
}

impl Cache {
    fn release(&mut self, event: &SerializedEvent, budget: &MemoryBudget) {
        let bytes = event.json_bytes();
        self.bytes -= bytes;
        budget.release(bytes);
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
) -> Vec<Arc<SerializedEvent>> {
    let before = bodies.len() as u64;
    let (position, seq) = (appended.position.0 - before, appended.seq.0 - before);
    let event = |(index, body)| {
        let (position, seq) = (Position(position + index), Seq(seq + index));
        Arc::new(SerializedEvent::new(Event { position, task_id: task_id.clone(), seq, at, body }))
    };
    (1..).zip(bodies).map(event).collect()
}

#[cfg(test)]
mod tests {
    use antiphon_core::{StatusChanged, TaskStatus};

    use super::*;

    fn event(position: u64) -> Arc<SerializedEvent> {
        let body: EventBody = StatusChanged::new(TaskStatus::Running).into();
        let task_id = TaskId::parse("task").unwrap();
        let (position, seq, at) = (Position(position), Seq(1), DateTime::UNIX_EPOCH);
        Arc::new(SerializedEvent::new(Event { position, task_id, seq, at, body }))
    }

    fn after(recent: &RecentEvents, position: u64) -> Vec<u64> {
        let found = recent.after(position, 100);
        found.iter().map(|event| event.value().position.0).collect()
    }

    #[test]
    fn events_that_come_out_of_order_are_found_up_to_a_gap() {
        let budget = MemoryBudget::default();
        let recent = RecentEvents::new(NumberedBy::Position, &budget);
        recent.add(&[event(5), event(6)]);
        recent.add(&[event(8)]);
        assert_eq!(after(&recent, 3), [0; 0], "4 is not here");
        assert_eq!(after(&recent, 4), [5, 6], "7 may follow");
        recent.add(&[event(7)]);
        assert_eq!(after(&recent, 4), [5, 6, 7, 8]);
        assert_eq!(after(&recent, 8), [0; 0]);
        recent.add(&[event(7)]);
        drop(recent);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let recent = RecentEvents::new(NumberedBy::Position, &MemoryBudget::default());
        let many = RECENT_EVENTS_MAX as u64 + 10;
        recent.add(&(1..=many).map(event).collect::<Vec<_>>());
        assert_eq!(after(&recent, 9), [0; 0]);
        assert_eq!(after(&recent, many - 1), [many]);
    }
}
