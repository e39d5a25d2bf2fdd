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

use crate::task::state::conversation;
use crate::watch::serialized::SerializedEvent;

/// Maximum number of events of one task or of the journal; the oldest are dropped first.
const RECENT_EVENTS_MAX: usize = 1024;

/// Maximum memory of the events of one task or of the journal, roughly; the oldest are dropped first.
const RECENT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum memory of the events of all tasks, roughly. Further events are not kept.
const RECENT_ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Memory of an event with its JSON, without what a message or other text in it takes.
const EVENT_BYTES: usize = 512;

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
    events: BTreeMap<u64, KeptEvent>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptEvent {
    event: Arc<SerializedEvent>,
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
            let Ok(bytes) = memory_of(event) else { return cache.clear(&self.budget) };
            if !self.budget.take(bytes) {
                return cache.clear(&self.budget);
            }
            cache.bytes += bytes;
            let kept = KeptEvent { event: Arc::clone(event), bytes };
            let known = cache.events.insert(self.numbered_by.number(event), kept);
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
        in_a_row.take(events_max).map(|(_, (_, kept))| Arc::clone(&kept.event)).collect()
    }

    /// Whether the next event after a number is not here, and later ones are.
    pub(crate) fn has_gap_after(&self, number: u64) -> bool {
        let cache = self.cache();
        let next = cache.events.range(number.saturating_add(1)..).next();
        next.is_some_and(|(found, _)| *found > number.saturating_add(1))
    }
}

impl Drop for RecentEvents {
    fn drop(&mut self) {
        self.budget.release(self.cache().bytes);
    }
}

impl Cache {
    fn release(&mut self, kept: &KeptEvent, budget: &MemoryBudget) {
        self.bytes -= kept.bytes;
        budget.release(kept.bytes);
    }

    fn clear(&mut self, budget: &MemoryBudget) {
        budget.release(self.bytes);
        *self = Self::default();
    }
}

/// Memory of an event and its JSON, roughly. The usual events of a step are not serialized for it: most followers read no JSON.
fn memory_of(event: &SerializedEvent) -> serde_json::Result<usize> {
    let body = &event.value().body;
    let is_short = matches!(body, EventBody::StateChanged(_) | EventBody::UsageRecorded(_))
        || matches!(body, EventBody::ToolStarted(started) if started.note.is_none())
        || matches!(body, EventBody::StatusChanged(changed) if changed.detail.is_none());
    let text = if is_short {
        0
    } else if let EventBody::MessageAppended(appended) = body {
        conversation::bytes(&appended.message)
    } else {
        event.json()?.len()
    };
    Ok(EVENT_BYTES + 2 * text)
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
    use antiphon_core::{
        AgentId, AgentState, Effect, MessageAppended, StateChanged, StatusChanged, TaskStatus,
        ToolCallId, ToolStarted, Usage, UsageRecorded, UserMessage,
    };
    use uuid::Uuid;

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

    #[test]
    fn the_events_of_a_step_are_kept_without_their_json() {
        let (agent_id, at) = (AgentId(Uuid::from_u128(1)), DateTime::UNIX_EPOCH);
        let (model, usage) = ("scripted/hello".to_owned(), Usage::default());
        let id = ToolCallId::parse("call").unwrap();
        let (name, effect) = ("read".to_owned(), Effect::ReadOnly);
        let started = ToolStarted { tool_call_id: id, tool_name: name, effect, note: None };
        let bodies = vec![
            MessageAppended::new(UserMessage::text("a long text".repeat(100), at)).into(),
            UsageRecorded { model, usage, purpose: None }.into(),
            StateChanged::new(agent_id, AgentState::Idle, AgentState::Thinking).into(),
            started.into(),
            StatusChanged::new(TaskStatus::Running).into(),
        ];
        let task_id = TaskId::parse("task").unwrap();
        let last = bodies.len() as u64;
        let appended = Appended {
            task_id: task_id.clone(),
            position: Position(last),
            seq: Seq(last),
            deduplicated: false,
        };
        let events = events_of(&appended, &task_id, at, bodies);
        let budget = MemoryBudget::default();
        let recent = RecentEvents::new(NumberedBy::Position, &budget);
        recent.add(&events);
        assert_eq!(after(&recent, 0), [1, 2, 3, 4, 5]);
        assert!(!events.iter().any(|event| event.is_serialized()));
        let json: usize = events.iter().map(|event| event.json().unwrap().len()).sum();
        assert!(budget.0.load(Ordering::Relaxed) >= json, "their JSON is counted before it exists");
    }
}
