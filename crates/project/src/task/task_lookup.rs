//! Finds a task by its id, a short form or prefix of it, the name of its agent, or `last`.
//!
//! | name               | task                                                                                 |
//! |--------------------|--------------------------------------------------------------------------------------|
//! | an id              | that task                                                                            |
//! | `last`             | the root of the newest tree of ordinary tasks: neither a record of an order nor a live agent |
//! | the name of an agent | its live task, or else its newest task                                             |
//! | another text       | the only task whose id, or the random part of it, begins with the text               |

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{AgentName, TaskId, TaskStatus, TaskSummary};
use antiphon_runtime::{Orchestrator, is_resident};

use crate::error::ProjectError;

/// Newest tasks among which `last` is searched: usually more than there are live agents and recorded orders.
const LAST_SEARCHED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Newest tasks of an agent among which its live task is searched.
const OF_AGENT_SEARCHED: NonZeroUsize = NonZeroUsize::new(256).unwrap();

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Finds a task of this orchestrator by its name. `last_of` selects the tasks among which `last` and the tasks of an
/// agent are searched.
pub async fn find_task(
    orchestrator: &Orchestrator,
    name: &str,
    last_of: TaskSelector,
) -> Result<TaskSummary, ProjectError> {
    let list = async |query| orchestrator.tasks(query).await.map_err(ProjectError::from);
    find_task_in(list, name, last_of).await
}

/// Finds a task in a list of tasks, wherever the list is.
pub async fn find_task_in<E: From<ProjectError>>(
    list: impl AsyncFn(TaskQuery) -> Result<Vec<TaskSummary>, E>,
    name: &str,
    last_of: TaskSelector,
) -> Result<TaskSummary, E> {
    if name == "last" {
        return find_last(list, last_of).await;
    }
    let which = TaskSelector::IdPrefix(name.to_owned());
    let found = list(TaskQuery { which, limit: TWO }).await?;
    if let Some(exactly) = found.iter().find(|task| task.task_id.as_str() == name) {
        return Ok(exactly.clone());
    }
    if AgentName::parse(name).is_ok() {
        let which = TaskSelector::Matching(of_agent(name, &last_of));
        let tasks = list(TaskQuery { which, limit: OF_AGENT_SEARCHED }).await?;
        let live = tasks.iter().find(|task| is_resident(task) && !task.status.is_terminal());
        if let Some(task) = live.or(tasks.first()) {
            return Ok(task.clone());
        }
        if found.is_empty() && last_of == TaskSelector::Unfinished {
            let which = TaskSelector::Matching(of_agent(name, &TaskSelector::All));
            let ended = list(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
            if let Some(last) = ended.first() {
                let (id, status) = (&last.task_id, last.status.as_str());
                let error = format!(
                    "agent `{name}` has no unfinished task: its last one, {id}, is {status}"
                );
                return Err(ProjectError::InvalidInput(error).into());
            }
        }
    }
    let mut found = found.into_iter();
    let error = match (found.next(), found.next()) {
        (Some(task), None) => return Ok(task),
        (Some(_), Some(_)) => {
            format!("more than one task begins with `{name}`: give a longer prefix")
        }
        (None, _) => format!("there is no task `{name}` here: see `antiphon tasks list --all`"),
    };
    Err(ProjectError::InvalidInput(error).into())
}

fn of_agent(name: &str, last_of: &TaskSelector) -> TaskFilter {
    let unfinished = TaskStatus::ALL.into_iter().filter(|status| !status.is_terminal());
    TaskFilter {
        statuses: if *last_of == TaskSelector::Unfinished {
            unfinished.collect()
        } else {
            Vec::new()
        },
        agent: Some(name.to_owned()),
        session: None,
        payer: None,
        roots: false,
        without_records: true,
        before: None,
    }
}

/// The root of the newest tree, unless unfinished tasks are searched and the root has ended.
async fn find_last<E: From<ProjectError>>(
    list: impl AsyncFn(TaskQuery) -> Result<Vec<TaskSummary>, E>,
    last_of: TaskSelector,
) -> Result<TaskSummary, E> {
    let unfinished = last_of == TaskSelector::Unfinished;
    let none = if unfinished {
        "there is no unfinished task here: see `antiphon tasks list`, or go on with the last conversation with `antiphon \
         run --session last \"…\"`; a live agent's task is named as the agent"
    } else {
        "there is no task here yet: start one with `antiphon run`; a live agent's task is named as the agent"
    };
    let mut candidates = list(TaskQuery { which: last_of, limit: LAST_SEARCHED }).await?;
    loop {
        let found = newest(&candidates).ok_or(ProjectError::InvalidInput(none.to_owned()))?;
        if found.root == found.task_id {
            return Ok(found);
        }
        let which = TaskSelector::One(found.root.clone());
        let top = list(TaskQuery { which, limit: NonZeroUsize::MIN }).await?.into_iter().next();
        if top.as_ref().is_some_and(is_resident) {
            // The live agent is older than the tasks that were searched, or has ended.
            candidates.retain(|task| task.root != found.root);
            continue;
        }
        return Ok(top.filter(|top| !unfinished || !top.status.is_terminal()).unwrap_or(found));
    }
}

/// The newest task outside of live agents' trees.
fn newest(found: &[TaskSummary]) -> Option<TaskSummary> {
    let inboxes: HashSet<&TaskId> =
        found.iter().filter(|task| is_resident(task)).map(|task| &task.task_id).collect();
    found.iter().find(|task| !task.is_record() && !inboxes.contains(&task.root)).cloned()
}
