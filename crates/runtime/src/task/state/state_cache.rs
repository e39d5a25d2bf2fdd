//! States of tasks in memory, so that starting a task reads little or nothing: new tasks until their first run, and tasks
//! that came to rest a moment ago. A missing entry costs a read, nothing else.
//!
//! A task at rest keeps its state for a few seconds, since most of those that go on do so at once: a parent whose next child
//! ends, an agent in a talk. After that it is a row of the journal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{AgentId, MessageQueued, Seq, TaskId};
use tokio::time::Instant;

use crate::budget::tree_usage::{Tree, Trees};
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::state::TaskState;
use crate::task::state::checkpoint;
use crate::task::state::reader::TaskReader;

/// Maximum memory of tasks at rest, in bytes, roughly. When one more does not fit, those that rest for the longest time are
/// dropped.
const RESTING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long the state of a task at rest is kept.
const REST_MAX: Duration = Duration::from_secs(3);

/// Memory of a state beside its conversation and its queue, roughly.
const STATE_BYTES: usize = 4096;

/// A task in memory.
pub(crate) struct CachedTask {
    pub(crate) state: TaskState,
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent, when the creation already recorded that the agent thinks.
    pub(crate) thinking: Option<AgentId>,
    pub(crate) freshness: Freshness,
}

/// How current a cached task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The task was just created: the cached state is complete.
    Complete,
    /// The task came to rest: later events have to be read from the journal.
    MayBeStale,
}

/// The cached tasks.
#[derive(Default)]
pub(crate) struct TaskCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// New tasks. They start in a moment and are not counted.
    new: HashMap<TaskId, CachedTask>,
    resting: HashMap<TaskId, RestingTask>,
    /// Memory of the tasks at rest.
    bytes: usize,
    /// Whether a future drops tasks that have rested long enough.
    is_swept: bool,
}

struct RestingTask {
    task: CachedTask,
    bytes: usize,
    since: Instant,
}

impl TaskCache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task that is about to be created.
    pub(crate) fn insert(&self, task_id: TaskId, task: CachedTask) {
        self.entries().new.insert(task_id, task);
    }

    /// Removes a task.
    pub(crate) fn take(&self, task_id: &TaskId) -> Option<CachedTask> {
        let mut entries = self.entries();
        entries.new.remove(task_id).or_else(|| entries.remove(task_id))
    }

    /// Keeps a task that came to rest, for a while. Returns whether a future has to be started that drops such tasks.
    fn keep(&self, state: TaskState, trees: Vec<Arc<Tree>>, now: Instant) -> bool {
        let queued: usize = state.queue.iter().map(MessageQueued::bytes).sum();
        let bytes = STATE_BYTES + state.conversation.bytes() + queued;
        let task_id = state.task_id.clone();
        let mut entries = self.entries();
        entries.remove(&task_id);
        if bytes > RESTING_BYTES_MAX {
            return false;
        }
        while entries.bytes + bytes > RESTING_BYTES_MAX {
            let oldest = entries.resting.iter().min_by_key(|(_, resting)| resting.since);
            let Some(oldest) = oldest.map(|(task_id, _)| task_id.clone()) else { break };
            entries.remove(&oldest);
        }
        let freshness = Freshness::MayBeStale;
        let task = CachedTask { state, trees, thinking: None, freshness };
        entries.bytes += bytes;
        entries.resting.insert(task_id, RestingTask { task, bytes, since: now });
        !std::mem::replace(&mut entries.is_swept, true)
    }

    /// Drops tasks that have rested long enough. Returns false when none is left.
    fn sweep(&self, now: Instant) -> bool {
        let mut entries = self.entries();
        let entries = &mut *entries;
        entries.resting.retain(|_, resting| {
            let stays = now.duration_since(resting.since) < REST_MAX;
            entries.bytes -= if stays { 0 } else { resting.bytes };
            stays
        });
        entries.is_swept = !entries.resting.is_empty();
        if !entries.is_swept {
            entries.resting.shrink_to_fit();
        }
        entries.is_swept
    }

    /// Takes a task for a run: from the cache with the events written since, or from the journal.
    pub(crate) async fn take_current(
        &self,
        task_id: &TaskId,
        reader: &TaskReader,
        trees: &Trees,
    ) -> Result<CachedTask, OrchestratorError> {
        if let Some(mut task) = self.take(task_id)
            && (task.freshness == Freshness::Complete || reader.catch_up(&mut task.state).await?)
        {
            return Ok(task);
        }
        let state = reader.load(task_id).await?;
        let trees = trees.of(&state, &*reader.journal).await?;
        Ok(CachedTask { state, trees, thinking: None, freshness: Freshness::MayBeStale })
    }
}

impl Entries {
    fn remove(&mut self, task_id: &TaskId) -> Option<CachedTask> {
        let resting = self.resting.remove(task_id)?;
        self.bytes -= resting.bytes;
        Some(resting.task)
    }
}

/// Keeps the state of a task that came to rest, for a few seconds, and a checkpoint of a long one. `before` is where the
/// task was when its run began.
pub(crate) fn keep_resting(
    services: &Arc<Services>,
    state: TaskState,
    trees: Vec<Arc<Tree>>,
    before: Seq,
) {
    checkpoint::save_if_due(services, &state, before);
    if !services.cache.keep(state, trees, Instant::now()) {
        return;
    }
    let shared = Arc::clone(services);
    services.background.tracker.spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(REST_MAX) => {}
                () = shared.background.stop.cancelled() => return,
            }
            if !shared.cache.sweep(Instant::now()) {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use antiphon_core::{SessionId, TaskCreated, UserMessage};
    use chrono::DateTime;

    use super::*;
    use crate::task::state::conversation::Conversation;

    fn state(name: &str, bytes: usize) -> TaskState {
        let mut said = Conversation::default();
        let message = UserMessage::text("x".repeat(bytes), DateTime::UNIX_EPOCH);
        said.push(Arc::new(message.into()));
        let created = TaskCreated::new("tester", SessionId::parse("session").unwrap());
        TaskState::created(TaskId::parse(name).unwrap(), created, DateTime::UNIX_EPOCH, said)
    }

    fn holds(cache: &TaskCache, name: &str) -> bool {
        cache.entries().resting.contains_key(&TaskId::parse(name).unwrap())
    }

    #[test]
    fn a_task_at_rest_is_dropped_after_seconds() {
        let (cache, begin) = (TaskCache::default(), Instant::now());
        assert!(cache.keep(state("a", 10), Vec::new(), begin), "the first one starts the future");
        assert!(!cache.keep(state("b", 10), Vec::new(), begin + REST_MAX / 2));
        assert!(cache.sweep(begin + REST_MAX));
        assert!(!holds(&cache, "a") && holds(&cache, "b"));
        assert!(!cache.sweep(begin + 2 * REST_MAX));
        assert_eq!(cache.entries().bytes, 0);
        assert!(cache.keep(state("a", 10), Vec::new(), begin), "and it is started again");
    }

    #[test]
    fn those_that_rest_the_longest_go_when_there_are_too_many_bytes() {
        let (cache, begin) = (TaskCache::default(), Instant::now());
        let third = RESTING_BYTES_MAX / 3;
        for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
            let since = begin + Duration::from_millis(n as u64);
            cache.keep(state(name, third), Vec::new(), since);
        }
        assert!(!holds(&cache, "a") && holds(&cache, "b") && holds(&cache, "c"));
        cache.keep(state("d", RESTING_BYTES_MAX), Vec::new(), begin);
        assert!(!holds(&cache, "d"), "too large");
        assert!(cache.entries().bytes <= RESTING_BYTES_MAX);
    }
}
