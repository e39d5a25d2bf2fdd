//! Which task is meant: by its id, by the beginning of it, or `last`. `last` is the newest tree's top,
//! not whichever of its tasks was dispatched last.

use std::num::NonZeroUsize;

use antiphon_core::TaskSummary;
use antiphon_core::port::{TaskQuery, Which};
use antiphon_runtime::Orchestrator;

use crate::failure::Failure;

/// The task that is meant. The last one is the top of its tree, unless that has ended and those are
/// wanted that have not.
pub(crate) async fn find(
    orchestrator: &Orchestrator,
    name: &str,
    last_of: Which,
) -> Result<TaskSummary, Failure> {
    let unfinished = last_of == Which::Unfinished;
    let found = choose(name, orchestrator.tasks(query(name, last_of)).await?)?;
    if name != "last" || found.root == found.task_id {
        return Ok(found);
    }
    let top = TaskQuery { which: Which::One(found.root.clone()), limit: NonZeroUsize::MIN };
    let top = orchestrator.tasks(top).await?.into_iter().next();
    Ok(top.filter(|top| !unfinished || !top.status.is_terminal()).unwrap_or(found))
}

/// What to ask a journal for.
pub(super) fn query(name: &str, last_of: Which) -> TaskQuery {
    let which = if name == "last" { last_of } else { Which::Beginning(name.to_owned()) };
    TaskQuery { which, limit: NonZeroUsize::MIN.saturating_add(1) }
}

/// The one that is meant, of those that were found.
pub(super) fn choose(name: &str, found: Vec<TaskSummary>) -> Result<TaskSummary, Failure> {
    if let Some(exactly) = found.iter().find(|task| task.task_id.as_str() == name) {
        return Ok(exactly.clone());
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(_), Some(_)) if name != "last" => {
            Err(Failure::usage(format!("more than one task begins with `{name}`: give more of it")))
        }
        (Some(task), _) => Ok(task),
        (None, _) if name == "last" => Err(Failure::usage("there is no such task here")),
        (None, _) => Err(Failure::usage(format!("there is no task `{name}` here"))),
    }
}
