//! A task as somebody watches it.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use antiphon_core::{
    EVENT_VERSION, Event, EventBody, Position, PriceTable, StreamEvent, TaskId, TaskStatus,
    TokenUsage, visible,
};
use antiphon_runtime::{Delta, Orchestrator, TaskState};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::failure::Failure;

/// How a task is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text, as it comes.
    Text,
    /// Everything that happens, one JSON object per line.
    Json,
}

/// Shows a task from `after` on until it ends, or until Ctrl-C, which cancels it; a second Ctrl-C
/// ends the program at once. `deltas` must have been asked for before the task was begun.
pub(crate) async fn watch(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    after: Position,
    mut deltas: broadcast::Receiver<Delta>,
    form: Form,
) -> Result<TaskState, Failure> {
    let mut screen = Screen { form, in_text: false };
    let mut follower = orchestrator.follow(Some(task_id.clone()), after);
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let mut ended = std::pin::pin!(orchestrator.wait(task_id));
    let (mut canceling, mut over) = (None, false);
    loop {
        tokio::select! {
            // What is said comes before what is written of it.
            biased;
            _ = interrupts.recv() => {
                if canceling.is_some() {
                    return Err(Failure::interrupted());
                }
                let (orchestrator, task_id) = (orchestrator.clone(), task_id.clone());
                let mut tasks = tokio::task::JoinSet::new();
                tasks.spawn(async move { drop(orchestrator.cancel(&task_id).await) });
                canceling = Some(tasks);
            }
            delta = deltas.recv() => match delta {
                Ok(delta) if delta.task_id == *task_id => screen.delta(&delta)?,
                Ok(_) => {}
                // What they said is in the journal, whole.
                Err(RecvError::Lagged(count)) => screen.missed(task_id, count)?,
                Err(RecvError::Closed) => {
                    return Err(Failure::failed("the orchestrator has ended"));
                }
            },
            event = follower.next() => {
                let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
                screen.event(&event)?;
                if event.body.ends_task() {
                    break;
                }
            }
            // The follower sees the end of a task that has one; of any other this is told.
            state = &mut ended, if !over => match state {
                Ok(_) => over = true,
                Err(error) => return Err(error.into()),
            },
        }
    }
    screen.end();
    Ok(orchestrator.task(task_id).await?)
}

/// What the end of a task means to the shell.
pub(crate) fn outcome(state: &TaskState) -> Result<(), Failure> {
    let detail = state.detail.as_ref();
    let text = |field: &str| detail.and_then(|detail| detail[field].as_str()).unwrap_or_default();
    match state.status {
        TaskStatus::Completed => Ok(()),
        TaskStatus::Canceled => Err(Failure::interrupted()),
        TaskStatus::Failed
        | TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired => {
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

/// On a terminal, what a task took: `31 + 12 tokens, $0.0003, 1.4 s`.
pub(crate) fn account(state: &TaskState, prices: &PriceTable, started: Instant) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let tokens = TokenUsage::from(state.usage);
    let model = state.created.model.as_ref();
    let cost = model.and_then(|model| prices.cost(model, state.usage));
    let cost = cost.map_or("cost unknown".to_owned(), |cost| cost.to_string());
    let (read, written) = (tokens.prompt_tokens, tokens.completion_tokens);
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{read} + {written} tokens, {cost}, {seconds:.1} s, task {}", state.task_id);
}

struct Screen {
    form: Form,
    /// The last thing printed was text without a line break behind it.
    in_text: bool,
}

impl Screen {
    fn delta(&mut self, delta: &Delta) -> Result<(), Failure> {
        match (self.form, &delta.event) {
            (Form::Json, _) => line(delta),
            (Form::Text, StreamEvent::TextDelta { delta }) => self.print(delta),
            (Form::Text, StreamEvent::ToolCallEnd { call }) => {
                let arguments = call.arguments.object().map_or("(malformed)", |json| json.as_str());
                self.end();
                self.print(&format!("→ {} {arguments}\n", call.name))
            }
            (
                Form::Text,
                StreamEvent::ThinkingDelta { .. }
                | StreamEvent::ToolCallBegin { .. }
                | StreamEvent::ToolCallDelta { .. },
            ) => Ok(()),
        }
    }

    fn missed(&mut self, task_id: &TaskId, count: u64) -> Result<(), Failure> {
        match self.form {
            Form::Json => line(&serde_json::json!({
                "v": EVENT_VERSION, "task_id": task_id, "type": "deltas_missed",
                "data": { "count": count },
            })),
            Form::Text => self.print(" […] "),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        match (self.form, &event.body) {
            (Form::Json, _) => line(event),
            // A lap is over: what comes next begins on a line of its own.
            (Form::Text, EventBody::UsageRecorded(_)) => {
                self.end();
                Ok(())
            }
            (
                Form::Text,
                EventBody::TaskCreated(_)
                | EventBody::StatusChanged(_)
                | EventBody::StateChanged(_)
                | EventBody::MessageAppended(_)
                | EventBody::ToolStarted(_),
            ) => Ok(()),
        }
    }

    fn print(&mut self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        // What a model writes must not drive the terminal.
        let text = if out.is_terminal() { Cow::Owned(visible(text)) } else { Cow::Borrowed(text) };
        self.in_text = !text.ends_with('\n');
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // Nobody reads any more: the same as Ctrl-C.
        printed.map_err(|_| Failure::interrupted())
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.in_text) {
            println!();
        }
    }
}

fn line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    let printed = writeln!(std::io::stdout().lock(), "{text}");
    printed.map_err(|_| Failure::interrupted())
}
