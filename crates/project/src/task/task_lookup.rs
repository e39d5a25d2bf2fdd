//! Finds a task by its id, a prefix of it, or `last`. `last` is the root of the newest tree of ordinary tasks:
//! neither the record of an order nor a live agent, which only its id names.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, is_resident};

use crate::error::ProjectError;

/// Newest tasks among which `last` is searched: usually more than there are live agents and recorded orders.
const LAST_SEARCHED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Finds a task by id, prefix or `last`. `last` is the root of its tree, unless unfinished tasks are searched and the root has ended.
pub async fn find_task(
    orchestrator: &Orchestrator,
    name: &str,
    last_of: TaskSelector,
) -> Result<TaskSummary, ProjectError> {
    let unfinished = last_of == TaskSelector::Unfinished;
    let mut candidates = orchestrator.tasks(task_query(name, last_of)).await?;
    loop {
        let found = choose_task(name, candidates.clone())?;
        if name != "last" || found.root == found.task_id {
            return Ok(found);
        }
        let which = TaskSelector::One(found.root.clone());
        let top = TaskQuery { which, limit: NonZeroUsize::MIN };
        let top = orchestrator.tasks(top).await?.into_iter().next();
        if top.as_ref().is_some_and(is_resident) {
            // The live agent is older than the tasks that were searched, or has ended.
            candidates.retain(|task| task.root != found.root);
            continue;
        }
        return Ok(top.filter(|top| !unfinished || !top.status.is_terminal()).unwrap_or(found));
    }
}

/// The query that finds the candidates for a name. `last_of` selects the tasks among which `last` is searched.
pub fn task_query(name: &str, last_of: TaskSelector) -> TaskQuery {
    if name == "last" {
        return TaskQuery { which: last_of, limit: LAST_SEARCHED };
    }
    TaskQuery { which: TaskSelector::IdPrefix(name.to_owned()), limit: TWO }
}

/// Chooses among the candidates that [`task_query`] found. Fails when none or more than one matches.
pub fn choose_task(name: &str, found: Vec<TaskSummary>) -> Result<TaskSummary, ProjectError> {
    if let Some(exactly) = found.iter().find(|task| task.task_id.as_str() == name) {
        return Ok(exactly.clone());
    }
    if name == "last" {
        let none = "there is no such task here; name a live agent's task by its id, see `antiphon agents \
                    status`";
        return last(found).ok_or_else(|| ProjectError::InvalidInput(none.to_owned()));
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(ProjectError::InvalidInput(format!(
            "more than one task begins with `{name}`: give a longer prefix"
        ))),
        (Some(task), None) => Ok(task),
        (None, _) => Err(ProjectError::InvalidInput(format!("there is no task `{name}` here"))),
    }
}

/// The newest task outside of live agents' trees.
fn last(mut found: Vec<TaskSummary>) -> Option<TaskSummary> {
    found.retain(|task| !task.is_record());
    let inboxes: HashSet<TaskId> =
        found.iter().filter(|task| is_resident(task)).map(|task| task.task_id.clone()).collect();
    found.into_iter().find(|task| !inboxes.contains(&task.root))
}
