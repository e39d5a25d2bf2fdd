//! `antiphon tasks resume`: resumes interrupted tasks and waits until they end or are suspended. While a
//! server runs in the project, the server runs them and this command only waits.

use antiphon_core::port::TaskSelector;
use antiphon_core::{MessageQueued, TaskId};
use antiphon_process::{Connection, Owner, Ownership, ProjectAccess};
use antiphon_project::project::OwnerRole;
use antiphon_project::saved_session;
use antiphon_project::task_lookup::find_task;
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::Recovered;

use crate::failure::{Exit, Failure};
use crate::interface::interface;
use crate::outcome;
use crate::terminal;

/// Resumes one task, or every interrupted one.
pub(super) async fn resume_tasks(
    access: ProjectAccess<'_>,
    task: Option<String>,
) -> Result<(), Failure> {
    let (project, environment) = match &access {
        ProjectAccess::Folder { project, environment } => (project, environment),
        ProjectAccess::Server { .. } => return resume(&access.change().await?, task).await,
    };
    let settings = project.reviewed_settings(environment)?;
    let journal = match Ownership::find(project).await? {
        Ownership::Owner(journal, _) => journal,
        Ownership::Client(server) => {
            return resume(&Connection::of_owner(server, project)?, task).await;
        }
    };
    // Without a user, calls that need an approval are refused, where a task says nothing else.
    let process = TaskProcess { refuses_approvals: true, ..TaskProcess::default() };
    let role = OwnerRole::Server(process);
    let mut owner = Owner::open(project, environment, settings, journal, role, interface).await?;
    owner.serve(project);
    let connection = Connection::Local(owner.project.orchestrator.clone());
    let resumed = resume(&connection, task).await;
    drop(connection);
    owner.hand_over().await;
    resumed
}

async fn resume(connection: &Connection, task: Option<String>) -> Result<(), Failure> {
    let Recovered { begun, waiting, ended } = match task {
        Some(name) => {
            let task =
                find_task(connection.reader(), &name, TaskSelector::Unfinished).await?.task_id;
            connection.resume(&task).await?;
            Recovered { begun: vec![task], ..Recovered::default() }
        }
        None => connection.recover().await?,
    };
    if !ended.is_empty() {
        let count = terminal::count(ended.len() as u64, "task");
        terminal::note(&format!("ended {count} whose parents had ended\n"));
    }
    if begun.is_empty() && waiting.is_empty() && ended.is_empty() {
        terminal::print("no interrupted tasks\n");
    }
    for task_id in waiting {
        if let Err(failure) = outcome::outcome(&connection.reader().task_alone(&task_id).await?) {
            terminal::note(&format!("{failure}\n"));
        }
    }
    let mut first_failure = None;
    for task_id in begun {
        let ended = match connection.wait(&task_id).await.map_err(Failure::from) {
            Ok(state) => {
                terminal::print(&format!("{task_id} {}\n", state.status.as_str()));
                // The session file of a task at another machine is not a file here.
                let is_here = connection.is_on_this_machine();
                match if is_here { saved_session::save(&state) } else { Ok(()) } {
                    Ok(()) => outcome::outcome(&state),
                    Err(error) => Err(error.into()),
                }
            }
            // A live agent never ends by itself: it is idle.
            Err(failure)
                if failure.exit == Exit::Unavailable && is_idle(connection, &task_id).await? =>
            {
                terminal::print(&format!("{task_id} idle\n"));
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            terminal::note(&format!("{task_id}: {failure}\n"));
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

/// Whether a task is a live agent whose inbox holds nothing that starts a turn.
async fn is_idle(connection: &Connection, task_id: &TaskId) -> Result<bool, Failure> {
    let state = connection.reader().task_alone(task_id).await?;
    let idle = !state.status.is_terminal() && !state.queue.iter().any(MessageQueued::wakes);
    Ok(state.created.resident && idle)
}
