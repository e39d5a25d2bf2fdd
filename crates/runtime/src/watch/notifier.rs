//! Notifies followers of recorded events: those of all tasks, and those of one task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Position, TaskId};
use tokio::sync::watch;

use crate::watch::recent_events::{MemoryBudget, NumberedBy, RecentEvents};

/// Number of task channels at which those without subscribers are dropped.
const CHANNELS_CLEANUP_AT: usize = 1024;

/// Notifies subscribers of new events.
#[derive(Debug)]
pub(crate) struct Notifier {
    all: Arc<EventChannel>,
    tasks: Mutex<TaskChannels>,
    /// Number of recorded requests for approvals.
    approvals: watch::Sender<u64>,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct TaskChannels {
    tasks: HashMap<TaskId, Arc<EventChannel>>,
    /// Number of channels at which unused ones are dropped.
    cleanup_at: usize,
}

/// Subscribers of one task or of the journal, and its latest events.
#[derive(Debug)]
pub(crate) struct EventChannel {
    updates: watch::Sender<Position>,
    pub(crate) recent: RecentEvents,
}

impl EventChannel {
    fn new(numbered_by: NumberedBy, budget: &MemoryBudget) -> Arc<Self> {
        let updates = watch::Sender::new(Position(0));
        Arc::new(Self { updates, recent: RecentEvents::new(numbered_by, budget) })
    }
}

impl Notifier {
    pub(crate) fn new() -> Self {
        let channels = TaskChannels { tasks: HashMap::new(), cleanup_at: CHANNELS_CLEANUP_AT };
        let budget = MemoryBudget::default();
        let all = EventChannel::new(NumberedBy::Position, &budget);
        Self { all, tasks: Mutex::new(channels), approvals: watch::Sender::new(0), budget }
    }

    /// Notifies subscribers that events up to `position` are recorded. Appends are acknowledged in any order: one that
    /// comes late is what a follower waits for that has seen a later one.
    pub(crate) fn notify(&self, task_id: &TaskId, position: Position) {
        let advance = |last: &mut Position| *last = position.max(*last);
        self.all.updates.send_modify(advance);
        if let Some(channel) = self.channel(task_id) {
            channel.updates.send_modify(advance);
        }
    }

    /// Notifies subscribers that a task has asked for an approval.
    pub(crate) fn notify_approval(&self) {
        self.approvals.send_modify(|count| *count += 1);
    }

    /// Changes with each approval that a task asks for.
    pub(crate) fn subscribe_approvals(&self) -> watch::Receiver<u64> {
        self.approvals.subscribe()
    }

    /// The channels that want the events of a task: its own and that of the journal, as far as they have subscribers.
    pub(crate) fn channels(&self, task_id: &TaskId) -> Vec<Arc<EventChannel>> {
        let all = (self.all.updates.receiver_count() > 0).then(|| Arc::clone(&self.all));
        self.channel(task_id).into_iter().chain(all).collect()
    }

    fn channel(&self, task_id: &TaskId) -> Option<Arc<EventChannel>> {
        let channels = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        channels.tasks.get(task_id).cloned()
    }

    pub(crate) fn subscribe(&self, task_id: Option<&TaskId>) -> watch::Receiver<Position> {
        match task_id {
            None => self.subscribe_all().1,
            Some(task_id) => self.subscribe_task(task_id).1,
        }
    }

    /// Subscribes to the journal, with its channel.
    pub(crate) fn subscribe_all(&self) -> (Arc<EventChannel>, watch::Receiver<Position>) {
        (Arc::clone(&self.all), self.all.updates.subscribe())
    }

    /// Subscribes to a task, with its channel.
    pub(crate) fn subscribe_task(
        &self,
        task_id: &TaskId,
    ) -> (Arc<EventChannel>, watch::Receiver<Position>) {
        let mut channels = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.tasks.len() >= channels.cleanup_at {
            channels.tasks.retain(|_, channel| channel.updates.receiver_count() > 0);
            channels.cleanup_at = CHANNELS_CLEANUP_AT.max(2 * channels.tasks.len());
        }
        let channel = channels
            .tasks
            .entry(task_id.clone())
            .or_insert_with(|| EventChannel::new(NumberedBy::Seq, &self.budget));
        // Under the lock, so that the channel is not dropped in between.
        (Arc::clone(channel), channel.updates.subscribe())
    }
}
