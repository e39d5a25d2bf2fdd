//! `antiphon tasks resume`: resumes interrupted tasks and waits until they end or are suspended. While another process
//! owns the journal, that process runs them and this command waits. It goes on with the next owner, or as the next owner.

use std::time::Duration;

use antiphon_core::port::TaskSelector;
use antiphon_core::{MessageQueued, TaskId, TaskStatus};
use antiphon_process::{AttachedTask, Connection, OwnTask, ProjectAccess};
use antiphon_project::error::ProjectError;
use antiphon_project::project::OwnerRole;
use antiphon_project::saved_session;
use antiphon_project::task_lookup::find_task;
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::{Recovered, TaskState};

use crate::commands::run::leave;
use crate::commands::serve::GRACE_S_DEFAULT;
use crate::failure::{Exit, Failure};
use crate::interface::interface;
use crate::outcome;
use crate::remaining_work::RemainingWork;
use crate::stop_signal::{COPY_WITHIN, Interrupts, StopSignal, StopSignals};
use crate::terminal;

/// How long calls that run here may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(GRACE_S_DEFAULT);

/// Pause before an owner that ends, and still answers, is asked again.
const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// How long the tasks may take to be interrupted.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);

/// Resumes one task, or every interrupted one.
pub(super) async fn resume_tasks(
    access: ProjectAccess<'_>,
    task: Option<String>,
    remaining_work: &mut RemainingWork,
) -> Result<(), Failure> {
    let (project, environment) = match &access {
        ProjectAccess::Folder { project, environment } => (project, environment),
        ProjectAccess::Server { .. } => {
            let mut owner = TaskOwner::Server(access.change().await?);
            let begun = owner.resume(task).await?;
            return owner.wait_for_all(&begun).await;
        }
    };
    let settings = project.reviewed_settings(environment)?;
    // Without a user, calls that need an approval are refused, where a task says nothing else.
    let role = OwnerRole::Resume(TaskProcess { refuses_approvals: true, ..TaskProcess::default() });
    let own = OwnTask { project, environment, settings: Some(settings), role, interface };
    let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
    let mut attachment = AttachedTask::open(own).await?;
    attachment.serve();
    let mut owner = TaskOwner::Journal(Box::new(attachment));
    let resumed = match owner.resume(task).await {
        Ok(begun) => owner.wait_or_stop(&begun, &mut stop_signal).await,
        Err(failure) => Err(failure),
    };
    let stops = resumed.as_ref().is_err_and(|failure| failure.exit == Exit::Terminated);
    if let TaskOwner::Journal(attachment) = owner {
        leave(*attachment, stops, remaining_work).await;
    }
    resumed
}

/// Which process runs the tasks.
enum TaskOwner<'a> {
    /// At the server that `--server` names.
    Server(Connection),
    /// In the owner of the journal, which may be this process.
    Journal(Box<AttachedTask<'a>>),
}

impl TaskOwner<'_> {
    fn connection(&self) -> &Connection {
        match self {
            Self::Server(connection) => connection,
            Self::Journal(attachment) => attachment.connection(),
        }
    }

    /// Resumes one task, or all. Returns those that run.
    async fn resume(&self, task: Option<String>) -> Result<Vec<TaskId>, Failure> {
        let connection = self.connection();
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
            if let Err(failure) = outcome::outcome(&connection.reader().task_alone(&task_id).await?)
            {
                terminal::note(&format!("{failure}\n"));
            }
        }
        Ok(begun)
    }

    /// Waits for all tasks. Ctrl-C interrupts them, SIGTERM stops them here; a second signal ends at once.
    async fn wait_or_stop(
        &mut self,
        begun: &[TaskId],
        stop_signal: &mut StopSignal,
    ) -> Result<(), Failure> {
        let mut interrupts = Interrupts::catch()?;
        let exit = tokio::select! {
            waited = self.wait_for_all(begun) => return waited,
            () = stop_signal.received() => Exit::Terminated,
            () = interrupts.received() => Exit::Interrupted,
        };
        let second = async {
            tokio::time::sleep(COPY_WITHIN).await;
            match Interrupts::catch() {
                Ok(mut again) => again.received().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.stop(begun, exit) => {}
            () = second => crate::keyboard::exit_now(130),
        }
        let message = "stopped: continue with `antiphon tasks resume`".to_owned();
        Err(Failure { exit, message })
    }

    async fn stop(&self, begun: &[TaskId], exit: Exit) {
        if let (Connection::Local(orchestrator), Exit::Terminated) = (self.connection(), exit) {
            orchestrator.drain(GRACE).await;
            return;
        }
        let stopping = async {
            for task_id in begun {
                // Those that have ended cannot be stopped.
                let _ = match exit {
                    Exit::Terminated => self.connection().pause(task_id).await,
                    Exit::Failed
                    | Exit::Usage
                    | Exit::Refused
                    | Exit::Unavailable
                    | Exit::Interrupted => self.connection().interrupt(task_id).await,
                };
            }
        };
        let _ = tokio::time::timeout(INTERRUPT_WAIT, stopping).await;
    }

    async fn wait_for_all(&mut self, begun: &[TaskId]) -> Result<(), Failure> {
        let mut first_failure = None;
        for task_id in begun {
            let ended = match self.wait(task_id).await {
                Ok(state) => {
                    terminal::print(&format!("{task_id} {}\n", state.status.as_str()));
                    // The session file of a task at another machine is not a file here.
                    let is_here = self.connection().is_on_this_machine();
                    match if is_here { saved_session::save(&state) } else { Ok(()) } {
                        Ok(()) => outcome::outcome(&state),
                        Err(error) => Err(error.into()),
                    }
                }
                // A live agent never ends by itself: it is idle.
                Err(failure)
                    if failure.exit == Exit::Unavailable
                        && is_idle(self.connection(), task_id).await? =>
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

    /// A task, once it has ended or is suspended, whichever process owns the journal meanwhile.
    async fn wait(&mut self, task_id: &TaskId) -> Result<TaskState, Failure> {
        let attachment = match self {
            Self::Server(connection) => return Ok(connection.wait(task_id).await?),
            Self::Journal(attachment) => attachment,
        };
        loop {
            let connection = attachment.connection().clone();
            let waited = tokio::select! {
                waited = connection.wait(task_id) => Some(waited),
                () = attachment.asked_to_leave() => None,
            };
            drop(connection);
            match waited {
                // A server wants the journal, and runs the tasks from then on.
                None => {
                    attachment.hand_over().await;
                    attachment.leave().await;
                    attachment.find_next_owner().await?;
                }
                // Its last calls may take minutes, and it answers meanwhile.
                Some(Err(ProjectError::OwnerEnds(_))) => {
                    if !attachment.find_next_owner().await? {
                        tokio::time::sleep(ENDING_PAUSE).await;
                        continue;
                    }
                }
                Some(Err(ProjectError::Unavailable(reason))) => {
                    if !attachment.find_next_owner().await? {
                        return Err(ProjectError::Unavailable(reason).into());
                    }
                }
                Some(waited) => return Ok(waited?),
            }
            attachment.serve();
            let connection = attachment.connection();
            let status = connection.reader().task_alone(task_id).await?.status;
            if matches!(status, TaskStatus::Pending | TaskStatus::Running) {
                connection.resume(task_id).await?;
            }
        }
    }
}

/// Whether a task is a live agent whose inbox holds nothing that starts a turn.
async fn is_idle(connection: &Connection, task_id: &TaskId) -> Result<bool, Failure> {
    let state = connection.reader().task_alone(task_id).await?;
    let idle = !state.status.is_terminal() && !state.queue.iter().any(MessageQueued::wakes);
    Ok(state.created.resident && idle)
}
