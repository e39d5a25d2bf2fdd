//! `antiphon tasks resume`: goes on with tasks that were cut off, until they end or wait for somebody.
//! While a server works on the project it goes on with them, and this only waits.

use antiphon_core::port::TaskSelector;
use antiphon_core::{MessageQueued, TaskId, visible};
use antiphon_runtime::Recovered;

use super::find::find;
use crate::connection::Connection;
use crate::failure::{Exit, Failure};
use crate::hands::{Allowed, Toolset};
use crate::models::Models;
use crate::outcome;
use crate::project::Project;
use crate::saved;
use crate::team::Team;
use crate::terminal;

/// Goes on with one task, or with all that were cut off.
pub(super) async fn go_on(
    project: &Project,
    models: Models,
    task: Option<String>,
) -> Result<(), Failure> {
    if let Some(connection) = Connection::server(project).await? {
        return resume(&connection, task).await;
    }
    let allowed = Allowed::default();
    let hands = Toolset::of(project, models.config(), &allowed).await?;
    let team = Team::usual(project, models.config(), &allowed, &hands)?;
    let connection = match project.orchestrator(models, hands, &team) {
        Ok(orchestrator) => Ok(Connection::Local(orchestrator)),
        Err(failure) => Connection::server_instead(project, failure).await,
    };
    let resumed = match connection {
        Ok(connection) => resume(&connection, task).await,
        Err(failure) => Err(failure),
    };
    team.disband().await;
    resumed
}

async fn resume(connection: &Connection, task: Option<String>) -> Result<(), Failure> {
    let Recovered { begun, waiting, ended } = match task {
        Some(name) => {
            let task = find(connection.reader(), &name, TaskSelector::Unfinished).await?.task_id;
            connection.resume(&task).await?;
            Recovered { begun: vec![task], ..Recovered::default() }
        }
        None => connection.recover().await?,
    };
    if !ended.is_empty() {
        let count = terminal::count(ended.len() as u64, "task");
        terminal::note(&format!("ended {count} whose callers had ended\n"));
    }
    if begun.is_empty() && waiting.is_empty() && ended.is_empty() {
        terminal::print("nothing was cut off\n");
    }
    for task_id in waiting {
        if let Err(failure) = outcome::outcome(&connection.reader().task(&task_id).await?) {
            terminal::note(&format!("{}\n", visible(&failure.to_string())));
        }
    }
    let mut first_failure = None;
    for task_id in begun {
        let ended = match connection.wait(&task_id).await {
            Ok(state) => {
                terminal::print(&format!("{task_id} {}\n", state.status.as_str()));
                saved::save(&state).and_then(|()| outcome::outcome(&state))
            }
            // A live agent never ends by itself: it has done what there was to do.
            Err(failure)
                if failure.exit == Exit::Unavailable && idles(connection, &task_id).await? =>
            {
                terminal::print(&format!("{task_id} idle\n"));
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            terminal::note(&format!("{task_id}: {}\n", visible(&failure.to_string())));
            first_failure.get_or_insert(failure);
        }
    }
    match first_failure {
        None => Ok(()),
        Some(Failure { exit, .. }) => {
            Err(Failure { exit, message: "not every task was completed".to_owned() })
        }
    }
}

/// Whether a task is a live agent's, with nothing in its inbox that it would begin a turn for.
async fn idles(connection: &Connection, task_id: &TaskId) -> Result<bool, Failure> {
    let state = connection.reader().task(task_id).await?;
    let idle = !state.status.is_terminal() && !state.queue.iter().any(MessageQueued::wakes);
    Ok(state.created.resident && idle)
}
