//! Next steps for the user, in words of the command line.

use antiphon_core::{TaskId, TaskSummary};
use antiphon_process::{Connection, PeerCancellation, ProjectAccess, ReadingTime};
use antiphon_view::display::escaped;

/// What to do about tasks that no process runs.
const IDLE: &str = "no process works on running tasks now: continue one with `antiphon run --resume TASK`, all with `antiphon serve`\n";

/// A hint when one of these tasks should run, and no process runs the tasks of the project, or that process is stopped.
pub(crate) fn idle_hint(access: &ProjectAccess<'_>, tasks: &[TaskSummary]) -> Option<String> {
    if access.is_idle(tasks) {
        return Some(IDLE.to_owned());
    }
    let owner =
        access.stopped_owner().filter(|_| tasks.iter().any(|it| !it.status.is_terminal()))?;
    Some(format!(
        "process {owner} works on the tasks of this project, and it is stopped: continue it with `kill -CONT {owner}`\n"
    ))
}

/// The command that resumes a suspended task.
pub(crate) fn resume_command(connection: &Connection, task_id: &TaskId) -> String {
    match connection {
        Connection::Local(_) => format!("`antiphon run --resume {task_id}`"),
        Connection::Server(..) => format!("`antiphon tasks resume {task_id}`"),
    }
}

/// When the peers that tasks run on get a cancellation; empty when there are none.
pub(crate) fn delivery_time(cancellation: &PeerCancellation) -> String {
    let names = |peers: &[String]| {
        let escaped: Vec<_> = peers.iter().map(|peer| escaped(peer)).collect();
        escaped.join("`, `")
    };
    match cancellation {
        PeerCancellation::NoPeers => String::new(),
        PeerCancellation::WithServer(peers) => format!(
            "; `{}` gets the cancellation when `antiphon serve` runs here, before the task does anything \
             more there",
            names(peers)
        ),
        PeerCancellation::AtOnce(peers) => {
            format!(
                "; `{}` gets the cancellation at once, or as soon as it can be reached",
                names(peers)
            )
        }
    }
}

/// When a task reads a message that was sent to it.
pub(crate) fn reading_time(connection: &Connection, task: &TaskSummary) -> String {
    match connection.reading_time(task) {
        ReadingTime::WhenResumed => {
            format!("the agent reads it with {}", resume_command(connection, &task.task_id))
        }
        ReadingTime::WhenContinued => "the agent reads it when the task continues".to_owned(),
        ReadingTime::WhenModelAnswers => {
            "the agent reads it when its model answers, which is tried at once".to_owned()
        }
        ReadingTime::WhileWorking => "the agent reads it while it works".to_owned(),
    }
}
