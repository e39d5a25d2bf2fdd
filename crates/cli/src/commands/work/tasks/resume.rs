//! `antiphon tasks resume`: resumes interrupted tasks and waits until they end or are suspended. While another process
//! owns the journal, that process runs them and this command waits. It goes on with the next owner, or as the next owner.

use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_process::{
    AttachedTask, Connection, OwnTask, ProjectAccess, ResumedEnd, ResumedTasks,
};
use antiphon_project::project::OwnerRole;
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::Recovered;

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
            let mut tasks = ResumedTasks::Server(access.change().await?);
            let begun = resume(&tasks, task.as_deref()).await?;
            return wait_for_all(&mut tasks, &begun).await;
        }
    };
    let settings = project.reviewed_settings(environment)?;
    // Without a user, calls that need an approval are refused, where a task says nothing else.
    let role = OwnerRole::Resume(TaskProcess { refuses_approvals: true, ..TaskProcess::default() });
    let own = OwnTask { project, environment, settings: Some(settings), role, interface };
    let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
    let mut attachment = AttachedTask::open(own).await?;
    attachment.serve();
    let mut tasks = ResumedTasks::Journal(Box::new(attachment));
    let resumed = match resume(&tasks, task.as_deref()).await {
        Ok(begun) => wait_or_stop(&mut tasks, &begun, &mut stop_signal).await,
        Err(failure) => Err(failure),
    };
    let stops = resumed.as_ref().is_err_and(|failure| failure.exit == Exit::Terminated);
    if let ResumedTasks::Journal(attachment) = tasks {
        leave(*attachment, stops, remaining_work).await;
    }
    resumed
}

/// Resumes one task, or all. Returns those that run.
async fn resume(tasks: &ResumedTasks<'_>, task: Option<&str>) -> Result<Vec<TaskId>, Failure> {
    let Recovered { begun, waiting, ended } = tasks.resume(task).await?;
    if !ended.is_empty() {
        let count = terminal::count(ended.len() as u64, "task");
        terminal::note(&format!("ended {count} whose parents had ended\n"));
    }
    if begun.is_empty() && waiting.is_empty() && ended.is_empty() {
        terminal::print("no interrupted tasks\n");
    }
    for task_id in waiting {
        let state = tasks.connection().reader().task_alone(&task_id).await?;
        if let Err(failure) = outcome::outcome(&state) {
            terminal::note(&format!("{failure}\n"));
        }
    }
    Ok(begun)
}

/// Waits for all tasks. Ctrl-C interrupts them, SIGTERM stops them here; a second signal ends at once.
async fn wait_or_stop(
    tasks: &mut ResumedTasks<'_>,
    begun: &[TaskId],
    stop_signal: &mut StopSignal,
) -> Result<(), Failure> {
    let mut interrupts = Interrupts::catch()?;
    let exit = tokio::select! {
        waited = wait_for_all(tasks, begun) => return waited,
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
        () = stop(tasks, begun, exit) => {}
        () = second => crate::keyboard::exit_now(130),
    }
    let message = "stopped: continue with `antiphon tasks resume`".to_owned();
    Err(Failure { exit, message })
}

async fn stop(tasks: &ResumedTasks<'_>, begun: &[TaskId], exit: Exit) {
    if let (Connection::Local(orchestrator), Exit::Terminated) = (tasks.connection(), exit) {
        orchestrator.drain(GRACE).await;
        return;
    }
    let stopping = async {
        for task_id in begun {
            // Those that have ended cannot be stopped.
            let _ = match exit {
                Exit::Terminated => tasks.connection().pause(task_id).await,
                Exit::Failed
                | Exit::Usage
                | Exit::Refused
                | Exit::Unavailable
                | Exit::Interrupted => tasks.connection().interrupt(task_id).await,
            };
        }
    };
    let _ = tokio::time::timeout(INTERRUPT_WAIT, stopping).await;
}

async fn wait_for_all(tasks: &mut ResumedTasks<'_>, begun: &[TaskId]) -> Result<(), Failure> {
    let mut first_failure = None;
    for task_id in begun {
        if let Err(failure) = wait_for(tasks, task_id).await {
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

async fn wait_for(tasks: &mut ResumedTasks<'_>, task_id: &TaskId) -> Result<(), Failure> {
    match tasks.wait(task_id).await? {
        ResumedEnd::AtRest(state) => {
            terminal::print(&format!("{task_id} {}\n", state.status.as_str()));
            tasks.save(&state)?;
            outcome::outcome(&state)
        }
        ResumedEnd::Idle => {
            terminal::print(&format!("{task_id} idle\n"));
            Ok(())
        }
    }
}
