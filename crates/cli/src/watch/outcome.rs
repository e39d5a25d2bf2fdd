//! How a task ended: the exit code of the command, and the last line on the terminal.

use std::io::IsTerminal;
use std::time::Instant;

use antiphon_core::{PriceTable, TaskId, TaskStatus, WaitingFor};
use antiphon_process::WatchResult;
use antiphon_runtime::TaskState;
pub(crate) use antiphon_view::cost_text as cost;
use antiphon_view::text::elapsed;
use antiphon_view::{FailedTask, FailureReader, failure_text, usage_text};

use crate::failure::{Exit, Failure};
use crate::terminal;

/// The failure a task ended or stopped with; a completed task is none.
pub(crate) fn outcome(state: &TaskState) -> Result<(), Failure> {
    let detail = state.detail.as_ref();
    let text = |field: &str| detail.and_then(|detail| detail[field].as_str()).unwrap_or_default();
    let id = &state.task_id;
    match (state.status, state.waiting_for) {
        (TaskStatus::Completed, _) => Ok(()),
        (TaskStatus::Canceled, _) => Err(Failure::canceled()),
        (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => Err(Failure::refused(format!(
            "task {id} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
             approvals allow`, `answer` or `deny`, then `antiphon run --resume {id}`"
        ))),
        // The user paused it, so this is no failure of the task.
        (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => {
            let word = if text("code") == "interrupted" { "interrupted" } else { "paused" };
            Err(suspended(id, word))
        }
        (TaskStatus::InputRequired, Some(WaitingFor::Budget)) => Err(Failure::refused(format!(
            "task {id} waits: {}; then `antiphon run --resume {id}`, unless a server runs it",
            text("error")
        ))),
        (TaskStatus::InputRequired, Some(WaitingFor::ToolResult)) => Err(Failure::refused(
            format!("task {id} waits for its client to send the result of a tool call"),
        )),
        (
            TaskStatus::InputRequired,
            Some(WaitingFor::Model | WaitingFor::Peer | WaitingFor::Storage) | None,
        )
        | (TaskStatus::Pending | TaskStatus::Running, _) => Err(Failure::unavailable(format!(
            "task {id} is suspended: resume it with `antiphon run --resume {id}`"
        ))),
        (TaskStatus::Failed, _) => {
            let failed = FailedTask {
                code: text("code"),
                error: text("error"),
                model: state.created.model.as_ref(),
                session: &state.created.session_id,
            };
            let message = failure_text(&failed, FailureReader::CommandLine);
            Err(match failed.code {
                "limit_reached" => Failure::refused(message),
                "connection" | "timeout" | "overloaded" | "rate_limited" | "server" | "cut" => {
                    Failure::unavailable(message)
                }
                _ => Failure::failed(message),
            })
        }
    }
}

/// A task that a user interrupted or paused, and how to go on with it.
pub(crate) fn suspended(id: &TaskId, word: &str) -> Failure {
    let message = format!(
        "task {id} is {word}: resume it with `antiphon run --resume {id}`, end it with `antiphon tasks \
         cancel {id}`"
    );
    Failure { exit: Exit::Interrupted, message }
}

/// Prints what a task and its descendants spent, if standard error is a terminal:
/// `31 + 12 tokens, $0.0003, 1.4 s, task 0199… and 5 below it`.
pub(crate) fn account(watched: &WatchResult, prices: &PriceTable, started: Instant) {
    if std::io::stderr().is_terminal() {
        let (usage, time) = (usage_text(&watched.totals.spent, prices), elapsed(started.elapsed()));
        let task = match watched.descendants {
            0 => format!("task {}", watched.state.task_id),
            below => format!("task {} and {below} below it", watched.state.task_id),
        };
        terminal::note(&format!("{usage}, {time}, {task}\n"));
    }
}
