//! States of tasks in memory, so that starting a task reads little or nothing: new tasks until their first run, and tasks
//! that came to rest a moment ago. A missing entry costs a read, nothing else.
//!
//! A task at rest keeps its state for a few seconds, since most of those that go on do so at once: a parent whose next child
//! ends, an agent in a talk. After that it is a row of the journal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{AgentId, HistoryRef, MessageQueued, Seq, TaskCreated, TaskId};
use tokio::time::Instant;

use crate::budget::tree_usage::{Tree, Trees};
use crate::byte_lru::ByteLru;
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

/// The least time between two looks for what has rested long enough.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Memory of a state beside its conversation and its queue, roughly.
const STATE_BYTES: usize = 4096;

/// A task in memory.
pub(crate) struct CachedTask {
    pub(crate) state: TaskState,
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent, when the creation already recorded that the agent thinks.
    pub(crate) thinking: Option<AgentId>,
    pub(crate) freshness: Freshness,
    pub(crate) after_end: AfterEnd,
}

/// What becomes of the conversation of a task that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// It stays in memory for a while: the session may go on.
    KeepConversation,
    /// No task continues it, or its client sends it with the next request.
    DropConversation,
}

impl AfterEnd {
    /// The session of a dispatched task rarely goes on.
    pub(crate) fn of(created: &TaskCreated) -> Self {
        if created.parent.is_some() { Self::DropConversation } else { Self::KeepConversation }
    }
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

struct Entries {
    /// New tasks. They start in a moment and are not counted.
    new: HashMap<TaskId, CachedTask>,
    resting: ByteLru<TaskId, RestingTask>,
    /// Whether a future drops tasks that have rested long enough.
    is_swept: bool,
}

struct RestingTask {
    task: CachedTask,
    since: Instant,
}

impl Default for Entries {
    fn default() -> Self {
        Self { new: HashMap::new(), resting: ByteLru::new(RESTING_BYTES_MAX), is_swept: false }
    }
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
        let resting = |entries: &mut Entries| entries.resting.remove(task_id).map(|it| it.task);
        entries.new.remove(task_id).or_else(|| resting(&mut entries))
    }

    /// Keeps a task that came to rest, for a while.
    fn keep(&self, state: TaskState, trees: Vec<Arc<Tree>>, now: Instant) {
        let queued: usize = state.queue.iter().map(MessageQueued::bytes).sum();
        let bytes = STATE_BYTES + state.conversation.bytes() + queued;
        let (task_id, freshness) = (state.task_id.clone(), Freshness::MayBeStale);
        let after_end = AfterEnd::of(&state.created);
        let task = CachedTask { state, trees, thinking: None, freshness, after_end };
        self.entries().resting.insert(task_id, RestingTask { task, since: now }, bytes);
    }

    /// Takes the tasks that have rested long enough. Also returns when there are more, if there are.
    fn sweep(&self, now: Instant) -> (Vec<TaskState>, Option<Instant>) {
        let mut entries = self.entries();
        let mut rested = Vec::new();
        while let Some(oldest) = entries.resting.oldest() {
            let until = oldest.since + REST_MAX;
            if until > now {
                return (rested, Some(until));
            }
            rested.extend(entries.resting.remove_oldest().map(|resting| resting.task.state));
        }
        entries.resting.shrink();
        (rested, None)
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
        let (freshness, after_end) = (Freshness::MayBeStale, AfterEnd::of(&state.created));
        Ok(CachedTask { state, trees, thinking: None, freshness, after_end })
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
    checkpoint::save_at_rest(services, &state, before);
    services.trees.keep_at_rest(&trees);
    services.cache.keep(state, trees, Instant::now());
    sweep_later(services);
}

/// Makes sure that a future drops states and conversations when it is time, as long as there are some.
pub(crate) fn sweep_later(services: &Arc<Services>) {
    if std::mem::replace(&mut services.cache.entries().is_swept, true) {
        return;
    }
    let shared = Arc::clone(services);
    services.background.tracker.spawn(async move {
        while let Some(next) = sweep(&shared) {
            // Not for each of many that came one after the other.
            let pause = tokio::time::sleep_until(next.max(Instant::now() + SWEEP_INTERVAL_MIN));
            tokio::select! {
                () = pause => {}
                () = shared.background.stop.cancelled() => return,
            }
        }
    });
}

/// Drops what has rested long enough. Of a long task, the conversation stays in the cache of conversations. Returns when there
/// is more to drop, if there is.
fn sweep(services: &Services) -> Option<Instant> {
    let (rested, next) = services.cache.sweep(Instant::now());
    let conversations = &services.reader.conversations;
    for TaskState { task_id, seq, conversation, .. } in rested {
        if checkpoint::is_possible(seq) {
            conversations.insert(HistoryRef { task_id, seq }, conversation, None);
        }
    }
    let next = next.into_iter().chain(conversations.sweep(Instant::now())).min();
    if next.is_none() {
        let mut entries = services.cache.entries();
        // One that came meanwhile has not started another future.
        entries.is_swept = !entries.resting.is_empty() || !conversations.is_empty();
        return entries.is_swept.then(Instant::now);
    }
    next
}

#[cfg(test)]
mod tests {
    use antiphon_core::{SessionId, UserMessage};
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
        cache.entries().resting.peek(&TaskId::parse(name).unwrap()).is_some()
    }

    #[test]
    fn a_task_at_rest_is_dropped_after_seconds() {
        let (cache, begin) = (TaskCache::default(), Instant::now());
        cache.keep(state("a", 10), Vec::new(), begin);
        cache.keep(state("b", 10), Vec::new(), begin + REST_MAX / 2);
        let (rested, next) = cache.sweep(begin + REST_MAX);
        assert_eq!((rested.len(), next), (1, Some(begin + REST_MAX / 2 + REST_MAX)));
        assert!(!holds(&cache, "a") && holds(&cache, "b"));
        assert_eq!(cache.sweep(begin + 2 * REST_MAX).1, None);
        assert_eq!(cache.entries().resting.bytes(), 0);
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
        assert!(cache.entries().resting.bytes() <= RESTING_BYTES_MAX);
    }
}
