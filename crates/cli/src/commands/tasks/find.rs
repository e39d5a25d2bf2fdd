//! Which task is meant: by its id, by the beginning of it, or `last`. `last` is the newest tree's top,
//! not whichever of its tasks was dispatched last, not what is kept of an order, and not the inbox of a
//! live agent, unless there is nothing else.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, is_resident};

use crate::failure::Failure;

/// Among so many of the newest the last one is looked for: more than there are live agents, and orders
/// since, usually.
const LAST_LOOKED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The task that is meant. The last one is the top of its tree, unless that has ended and those are
/// wanted that have not.
pub(crate) async fn find(
    orchestrator: &Orchestrator,
    name: &str,
    last_of: TaskSelector,
) -> Result<TaskSummary, Failure> {
    let unfinished = last_of == TaskSelector::Unfinished;
    let found = choose(name, orchestrator.tasks(query(name, last_of)).await?)?;
    if name != "last" || found.root == found.task_id {
        return Ok(found);
    }
    let top = TaskQuery { which: TaskSelector::One(found.root.clone()), limit: NonZeroUsize::MIN };
    let top = orchestrator.tasks(top).await?.into_iter().next();
    Ok(top.filter(|top| !unfinished || !top.status.is_terminal()).unwrap_or(found))
}

/// What to ask a journal for.
pub(super) fn query(name: &str, last_of: TaskSelector) -> TaskQuery {
    if name == "last" {
        return TaskQuery { which: last_of, limit: LAST_LOOKED };
    }
    TaskQuery { which: TaskSelector::IdPrefix(name.to_owned()), limit: TWO }
}

/// The one that is meant, of those that were found.
pub(super) fn choose(name: &str, found: Vec<TaskSummary>) -> Result<TaskSummary, Failure> {
    if let Some(exactly) = found.iter().find(|task| task.task_id.as_str() == name) {
        return Ok(exactly.clone());
    }
    if name == "last" {
        return last(found).ok_or_else(|| Failure::usage("there is no such task here"));
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("more than one task begins with `{name}`: give more of it")))
        }
        (Some(task), None) => Ok(task),
        (None, _) => Err(Failure::usage(format!("there is no task `{name}` here"))),
    }
}

/// The newest that is no agent's inbox, and below none; the newest, when there is no other.
fn last(mut found: Vec<TaskSummary>) -> Option<TaskSummary> {
    found.retain(|task| !task.is_record());
    let inboxes: HashSet<TaskId> =
        found.iter().filter(|task| is_resident(task)).map(|task| task.task_id.clone()).collect();
    let index = found.iter().position(|task| !inboxes.contains(&task.root)).unwrap_or(0);
    found.into_iter().nth(index)
}
