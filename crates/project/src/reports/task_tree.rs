//! A task and its descendants.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, OrchestratorError};

/// Tasks of one tree that are read, at most.
pub const TREE_TASKS_MAX: usize = 20_000;

/// One more than is read says that a tree is too large.
const TREE_LIMIT: NonZeroUsize = NonZeroUsize::new(TREE_TASKS_MAX + 1).unwrap();

/// A task and its descendants, the oldest first, so that a parent precedes its children. `None` when
/// the whole tree has more than [`TREE_TASKS_MAX`] tasks; empty when there is no such task.
pub async fn task_and_descendants(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<Option<Vec<TaskSummary>>, OrchestratorError> {
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let Some(top) = orchestrator.tasks(one).await?.pop() else { return Ok(Some(Vec::new())) };
    let query = TaskQuery { which: TaskSelector::Tree(top.root), limit: TREE_LIMIT };
    let mut found = orchestrator.tasks(query).await?;
    if found.len() > TREE_TASKS_MAX {
        return Ok(None);
    }
    found.reverse();
    let mut included = HashSet::from([task_id.clone()]);
    let tasks = found.into_iter().filter(|task| {
        let is_descendant = task.parent.as_ref().is_some_and(|parent| included.contains(parent));
        if is_descendant {
            included.insert(task.task_id.clone());
        }
        is_descendant || included.contains(&task.task_id)
    });
    Ok(Some(tasks.collect()))
}
