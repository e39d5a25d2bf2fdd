//! Next steps for the user, in words of the command line.

use antiphon_core::{TaskId, TaskSummary, WaitingFor};
use antiphon_process::{Connection, ProjectAccess};

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

/// When the peers that tasks run on get a cancellation; empty when there are none. `on_peers` names the peers.
pub(crate) fn delivery_time(connection: &Connection, on_peers: &[String]) -> String {
    let peers = on_peers.join("`, `");
    match (connection, on_peers) {
        (_, []) => String::new(),
        (Connection::Local(_), _) => format!(
            "; `{peers}` gets the cancellation when `antiphon serve` runs here, before the task does anything \
             more there"
        ),
        (Connection::Server(..), _) => {
            format!("; `{peers}` gets the cancellation at once, or as soon as it can be reached")
        }
    }
}

/// When a task reads a message that was sent to it.
pub(crate) fn reading_time(connection: &Connection, task: &TaskSummary) -> String {
    match (connection, task.waiting_for) {
        (Connection::Local(_), _) | (Connection::Server(..), Some(WaitingFor::Resume)) => {
            format!("the agent reads it with {}", resume_command(connection, &task.task_id))
        }
        (
            Connection::Server(..),
            Some(WaitingFor::Approval | WaitingFor::ToolResult | WaitingFor::Budget),
        ) => "the agent reads it when the task continues".to_owned(),
        (Connection::Server(..), Some(WaitingFor::Model)) => {
            "the agent reads it when its model answers, which is tried at once".to_owned()
        }
        (Connection::Server(..), Some(WaitingFor::Peer | WaitingFor::Storage) | None) => {
            "the agent reads it while it works".to_owned()
        }
    }
}
