//! States of tasks in memory, so that starting a task reads little or nothing: new tasks until their
//! first run, and suspended resident tasks. A missing entry costs a read, nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::{AgentId, TaskId};

use crate::budget::tree_usage::{Tree, Trees};
use crate::orchestrator_error::OrchestratorError;
use crate::task::state::TaskState;
use crate::task::state::reader::TaskReader;

/// Maximum number of suspended resident tasks kept in memory. When one more is added, all of them
/// are dropped and read from the journal again when they wake.
const SUSPENDED_MAX: usize = 4096;

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
    /// The task was suspended: later events have to be read from the journal.
    MayBeStale,
}

/// The cached tasks.
#[derive(Default)]
pub(crate) struct TaskCache(Mutex<HashMap<TaskId, CachedTask>>);

impl TaskCache {
    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskId, CachedTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task that is about to be created.
    pub(crate) fn insert(&self, task_id: TaskId, task: CachedTask) {
        self.tasks().insert(task_id, task);
    }

    /// Removes a task.
    pub(crate) fn take(&self, task_id: &TaskId) -> Option<CachedTask> {
        self.tasks().remove(task_id)
    }

    /// Keeps a suspended resident task; any other task is dropped.
    pub(crate) fn keep_suspended(&self, state: TaskState, trees: Vec<Arc<Tree>>) {
        if !state.created.resident {
            return;
        }
        let mut tasks = self.tasks();
        if tasks.len() >= SUSPENDED_MAX {
            // New tasks start in a moment and stay.
            tasks.retain(|_, task| task.freshness == Freshness::Complete);
        }
        let task_id = state.task_id.clone();
        let freshness = Freshness::MayBeStale;
        tasks.insert(task_id, CachedTask { state, trees, thinking: None, freshness });
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
