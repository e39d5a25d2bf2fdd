//! Notifies followers of recorded events: those of all tasks, and those of one task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Position, TaskId};
use tokio::sync::watch;

use crate::watch::recent_events::{MemoryBudget, RecentEvents};

/// Number of task channels at which those without subscribers are dropped.
const CHANNELS_CLEANUP_AT: usize = 1024;

/// Notifies subscribers of new events.
#[derive(Debug)]
pub(crate) struct Notifier {
    all: watch::Sender<Position>,
    tasks: Mutex<TaskChannels>,
    /// Number of recorded requests for approvals.
    approvals: watch::Sender<u64>,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct TaskChannels {
    tasks: HashMap<TaskId, Arc<TaskChannel>>,
    /// Number of channels at which unused ones are dropped.
    cleanup_at: usize,
}

/// Subscribers of one task, and its latest events.
#[derive(Debug)]
pub(crate) struct TaskChannel {
    updates: watch::Sender<Position>,
    pub(crate) recent: RecentEvents,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        let channels = TaskChannels { tasks: HashMap::new(), cleanup_at: CHANNELS_CLEANUP_AT };
        Self {
            all: watch::Sender::new(Position(0)),
            tasks: Mutex::new(channels),
            approvals: watch::Sender::new(0),
            budget: MemoryBudget::default(),
        }
    }

    /// Notifies subscribers that events up to `position` are recorded.
    pub(crate) fn notify(&self, task_id: &TaskId, position: Position) {
        let advance = |last: &mut Position| {
            let newer = position > *last;
            *last = position.max(*last);
            newer
        };
        self.all.send_if_modified(advance);
        if let Some(channel) = self.channel(task_id) {
            channel.updates.send_if_modified(advance);
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

    /// The channel of a task, if it has subscribers.
    pub(crate) fn channel(&self, task_id: &TaskId) -> Option<Arc<TaskChannel>> {
        let channels = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        channels.tasks.get(task_id).cloned()
    }

    pub(crate) fn subscribe(&self, task_id: Option<&TaskId>) -> watch::Receiver<Position> {
        match task_id {
            None => self.subscribe_all(),
            Some(task_id) => self.subscribe_task(task_id).1,
        }
    }

    pub(crate) fn subscribe_all(&self) -> watch::Receiver<Position> {
        self.all.subscribe()
    }

    /// Subscribes to a task, with its channel.
    pub(crate) fn subscribe_task(
        &self,
        task_id: &TaskId,
    ) -> (Arc<TaskChannel>, watch::Receiver<Position>) {
        let mut channels = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.tasks.len() >= channels.cleanup_at {
            channels.tasks.retain(|_, channel| channel.updates.receiver_count() > 0);
            channels.cleanup_at = CHANNELS_CLEANUP_AT.max(2 * channels.tasks.len());
        }
        let channel = channels.tasks.entry(task_id.clone()).or_insert_with(|| {
            let updates = watch::Sender::new(Position(0));
            Arc::new(TaskChannel { updates, recent: RecentEvents::new(&self.budget) })
        });
        // Under the lock, so that the channel is not dropped in between.
        (Arc::clone(channel), channel.updates.subscribe())
    }
}
