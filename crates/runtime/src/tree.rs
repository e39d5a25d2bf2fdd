//! What a tree of tasks has used up, shared by those of its tasks that run.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use antiphon_core::port::{Journal, Read, TaskQuery, Which};
use antiphon_core::{EventBody, Position, TaskId, TaskLimits};
use chrono::{DateTime, Utc};

use crate::limits::Totals;
use crate::orchestrator::OrchestratorError;
use crate::state::{ReplayError, TaskState};

/// Tasks of a tree that are added up when it is taken up again.
const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// Trees that are remembered before those that nobody works on are thrown away.
const TREES_SWEPT: usize = 2 * crate::running::TASKS_RUNNING_MAX;

/// One tree of tasks.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) limits: TaskLimits,
    pub(crate) began: DateTime<Utc>,
    totals: Mutex<Totals>,
}

impl Tree {
    pub(crate) fn totals(&self) -> Totals {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds what was written of one of its tasks.
    pub(crate) fn add(&self, events: &[EventBody]) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for body in events {
            match body {
                EventBody::ToolStarted(_) => totals.calls = totals.calls.saturating_add(1),
                EventBody::UsageRecorded(recorded) => totals.pay(recorded),
                EventBody::TaskCreated(_)
                | EventBody::StatusChanged(_)
                | EventBody::StateChanged(_)
                | EventBody::MessageAppended(_)
                | EventBody::MessageQueued(_)
                | EventBody::ApprovalRequested(_)
                | EventBody::ApprovalDecided(_)
                | EventBody::ToolRefused(_)
                | EventBody::ToolRequested(_)
                | EventBody::Dispatched(_)
                | EventBody::Awaited(_)
                | EventBody::HandedOver(_)
                | EventBody::Relayed(_)
                | EventBody::OutputRejected(_)
                | EventBody::Compacted(_) => {}
            }
        }
    }
}

/// The trees whose tasks run.
#[derive(Debug, Default)]
pub(crate) struct Trees(Mutex<HashMap<TaskId, Weak<Tree>>>);

impl Trees {
    /// The tree of a task: the one that others of its tasks share already, or as the journal
    /// has it.
    pub(crate) async fn of(
        &self,
        state: &TaskState,
        journal: &dyn Journal,
    ) -> Result<Arc<Tree>, OrchestratorError> {
        let root = state.created.root.as_ref().unwrap_or(&state.task_id);
        if let Some(tree) = self.shared(root) {
            return Ok(tree);
        }
        let alone = *root == state.task_id;
        let (limits, began) = if alone {
            (state.created.limits, state.created_at)
        } else {
            beginning(root, journal).await?
        };
        // A task that has asked nobody yet has dispatched nobody either.
        let totals = if alone && state.turns == 0 {
            Totals::default()
        } else {
            let query = TaskQuery { which: Which::Tree(root.clone()), limit: TREE_TASKS_MAX };
            Totals::of(&journal.tasks(query).await?)
        };
        let tree = Arc::new(Tree { limits, began, totals: Mutex::new(totals) });
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been first.
        if let Some(first) = trees.get(root).and_then(Weak::upgrade) {
            return Ok(first);
        }
        if trees.len() >= TREES_SWEPT {
            trees.retain(|_, tree| tree.strong_count() > 0);
        }
        trees.insert(root.clone(), Arc::downgrade(&tree));
        Ok(tree)
    }

    fn shared(&self, root: &TaskId) -> Option<Arc<Tree>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(root).and_then(Weak::upgrade)
    }
}

/// How far the task at the top may go, and when it was accepted.
async fn beginning(
    root: &TaskId,
    journal: &dyn Journal,
) -> Result<(TaskLimits, DateTime<Utc>), OrchestratorError> {
    let read = Read { task_id: Some(root.clone()), after: Position(0), limit: NonZeroUsize::MIN };
    let first = journal.read(read).await?.events.into_iter().next();
    let first = first.ok_or_else(|| ReplayError::NoTask { task_id: root.clone() })?;
    let EventBody::TaskCreated(created) = first.body else {
        return Err(ReplayError::OutOfOrder { task_id: root.clone(), seq: first.seq }.into());
    };
    Ok((created.limits, first.at))
}
