//! How a task ended, for the shell and for people.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Instant;

use antiphon_core::{PriceTable, TaskId, TaskStatus, TokenUsage, Usage, WaitingFor};
use antiphon_runtime::{TaskState, Totals};

use crate::failure::{Exit, Failure};
use crate::screen::elapsed;
use crate::watch::Watched;

/// What the end of a task means to the shell.
pub(crate) fn outcome(state: &TaskState) -> Result<(), Failure> {
    let detail = state.detail.as_ref();
    let text = |field: &str| detail.and_then(|detail| detail[field].as_str()).unwrap_or_default();
    let id = &state.task_id;
    match (state.status, state.waiting_for) {
        (TaskStatus::Completed, _) => Ok(()),
        (TaskStatus::Canceled, _) => Err(Failure::interrupted()),
        (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => Err(Failure::refused(format!(
            "task {id} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
             approvals allow` or `deny`, then `antiphon run --resume {id}`"
        ))),
        // Somebody wanted it so.
        (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => Err(Failure {
            exit: Exit::Interrupted,
            message: format!("task {id} is paused: go on with `antiphon run --resume {id}`"),
        }),
        (TaskStatus::InputRequired, Some(WaitingFor::Budget)) => Err(Failure::refused(format!(
            "task {id} waits: {}; then `antiphon run --resume {id}`, unless a server works on it",
            text("error")
        ))),
        (TaskStatus::InputRequired, Some(WaitingFor::ToolResult)) => Err(Failure::refused(
            format!("task {id} waits for its client to say what came of a call"),
        )),
        (TaskStatus::InputRequired, None) | (TaskStatus::Pending | TaskStatus::Running, _) => {
            Err(Failure::unavailable(format!(
                "task {id} rests: go on with `antiphon run --resume {id}`"
            )))
        }
        (TaskStatus::Failed, _) => {
            let error = text("error").to_owned();
            Err(match text("code") {
                "limit_reached" => Failure::refused(error),
                "connection" | "timeout" | "overloaded" | "rate_limited" | "server" | "cut" => {
                    Failure::unavailable(error)
                }
                _ => Failure::failed(error),
            })
        }
    }
}

/// On a terminal, what a task took with everything below it: `31 + 12 tokens, $0.0003, 1.4 s`.
pub(crate) fn account(watched: &Watched, prices: &PriceTable, started: Instant) {
    if std::io::stderr().is_terminal() {
        let time = elapsed(started.elapsed());
        let (id, below) = (&watched.task_id, watched.below as u64);
        eprintln!("{}, {time}, {}", took(&watched.totals, prices), named(id, below));
    }
}

/// `31 + 12 tokens, $0.0003`.
fn took(totals: &Totals, prices: &PriceTable) -> String {
    let mut usage = Usage::default();
    for spent in totals.spent.values() {
        usage += *spent;
    }
    let tokens = TokenUsage::from(usage);
    let (read, written) = (tokens.prompt_tokens, tokens.completion_tokens);
    format!("{read} + {written} tokens, {}", cost(&totals.spent, prices))
}

/// `task 0199…`, or `task 0199… and 5 below it`.
fn named(id: &TaskId, below: u64) -> String {
    if below == 0 { format!("task {id}") } else { format!("task {id} and {below} below it") }
}

/// What models cost, as far as that is known.
pub(crate) fn cost(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> String {
    antiphon_runtime::cost(spent, prices)
        .map_or_else(|_| "cost unknown".to_owned(), |cost| cost.to_string())
}
