//! How a task ended: the exit code of the command, and the last line on the terminal.

use std::io::IsTerminal;
use std::time::Instant;

use antiphon_core::{PriceTable, TaskId};
use antiphon_process::WatchResult;
use antiphon_runtime::TaskState;
pub(crate) use antiphon_view::cost_text as cost;
use antiphon_view::text::elapsed;
use antiphon_view::{FailureKind, FailureReader, TaskOutcome, usage_text};

use crate::failure::{Exit, Failure};
use crate::terminal;

/// The failure a task ended or stopped with; a completed task is none.
pub(crate) fn outcome(state: &TaskState) -> Result<(), Failure> {
    let id = &state.task_id;
    Err(match TaskOutcome::of(state, FailureReader::CommandLine) {
        TaskOutcome::Completed => return Ok(()),
        TaskOutcome::Canceled => Failure::canceled(),
        TaskOutcome::WaitsForApproval => Failure::refused(format!(
            "task {id} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
             approvals allow`, `answer` or `deny`, then `antiphon run --resume {id}`"
        )),
        // The user paused it, so this is no failure of the task.
        TaskOutcome::Interrupted => suspended(id, "interrupted"),
        TaskOutcome::Paused => suspended(id, "paused"),
        TaskOutcome::WaitsForBudget(why) => Failure::refused(format!(
            "task {id} waits: {why}; then `antiphon run --resume {id}`, unless a server runs it"
        )),
        TaskOutcome::WaitsForClient => Failure::refused(format!(
            "task {id} waits for its client to send the result of a tool call"
        )),
        TaskOutcome::Suspended => Failure::unavailable(format!(
            "task {id} is suspended: resume it with `antiphon run --resume {id}`"
        )),
        TaskOutcome::Failed(FailureKind::Limit, why) => Failure::refused(why),
        TaskOutcome::Failed(FailureKind::Temporary, why) => Failure::unavailable(why),
        TaskOutcome::Failed(FailureKind::Permanent, why) => Failure::failed(why),
    })
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
