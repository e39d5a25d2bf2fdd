//! What a client hears of its task: the text as it comes, and how it ended.
//!
//! Text comes from the deltas; the journal says what was really said. Whatever was missed is told from
//! there: a watcher that falls behind hears whole answers from then on, and loses nothing. An answer
//! that does not go on as it was told cannot be taken back, and ends in an error.

use std::collections::HashSet;
use std::pin::Pin;

use antiphon_core::port::JournalError;
use antiphon_core::{
    AssistantMessage, Event, EventBody, Message, Position, StatusChanged, StopReason, StreamEvent,
    TaskId, TaskStatus, ToolCallBlock, ToolCallId, Usage, WaitingFor,
};
use antiphon_runtime::{Delta, DeltaEvent, Follower, Orchestrator, OrchestratorError, TaskState};
use axum::http::StatusCode;
use serde_json::Value;
use tokio::sync::mpsc;

use super::refusal::Refusal;

/// What stands between the texts of two turns.
const BETWEEN: &str = "\n\n";

/// What a client hears.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    /// More text.
    Text(String),
    /// It is over.
    End(Ending),
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ending {
    pub(crate) reason: Reason,
    /// Calls that the client makes.
    pub(crate) calls: Vec<ToolCallBlock>,
    pub(crate) usage: Usage,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// The next event of the journal. It is not begun anew for every delta, for each begins with a look at
/// the journal.
type Reading = Pin<Box<dyn Future<Output = (Follower, Result<Event, JournalError>)> + Send>>;

type Resting = Pin<Box<dyn Future<Output = Result<TaskState, OrchestratorError>> + Send>>;

/// Somebody who waits for an answer.
pub(crate) struct Watch {
    orchestrator: Orchestrator,
    task_id: TaskId,
    reading: Reading,
    /// None behind a gap.
    deltas: Option<mpsc::Receiver<Delta>>,
    /// A delta of a turn that the journal has not come to.
    ahead: Option<Delta>,
    /// Says when the task stops without an end.
    resting: Option<Resting>,
    /// Whether it was tried to end the task as the journal has it now.
    tried: bool,
    book: Book,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Form {
    /// What was said.
    #[default]
    Text,
    /// What was delivered, as JSON.
    Json,
}

/// What is known of the answer.
#[derive(Default)]
struct Book {
    /// What stands before the task begins was said elsewhere.
    begun: bool,
    form: Form,
    turn: u32,
    /// Text of this turn that was told.
    told: String,
    /// Whether the journal has the answer of this turn.
    whole: bool,
    /// Whether a turn before said something.
    spoke: bool,
    stop: Option<StopReason>,
    /// Calls of the last answer without a result.
    open: Vec<ToolCallBlock>,
    /// Those of them that went out to the client.
    requested: HashSet<ToolCallId>,
    usage: Usage,
    ending: Option<Ending>,
}

impl Watch {
    /// `follower` and `deltas` are those of the task, from its beginning.
    pub(crate) fn new(
        orchestrator: &Orchestrator,
        task_id: TaskId,
        follower: Option<Follower>,
        deltas: Option<mpsc::Receiver<Delta>>,
    ) -> Self {
        let from_journal = || orchestrator.follow(Some(task_id.clone()), Position(0));
        Self {
            reading: read_on(follower.unwrap_or_else(from_journal)),
            orchestrator: orchestrator.clone(),
            task_id,
            deltas,
            ahead: None,
            resting: None,
            tried: false,
            book: Book::default(),
        }
    }

    /// What comes next; nothing behind the end. Cancel safe: what was not handed out is still there.
    pub(crate) async fn next(&mut self) -> Result<Heard, Refusal> {
        loop {
            if let Some(ending) = self.book.ending.take() {
                return Ok(Heard::End(ending));
            }
            if !self.tried && self.book.waits_for_client() {
                self.conclude().await?;
            }
            if let Some(delta) = self.ahead.take_if(|delta| delta.turn <= self.book.turn)
                && let Some(text) = self.book.hear(delta)
            {
                return Ok(Heard::Text(text));
            }
            let listens = self.ahead.is_none();
            let resting = self.resting.get_or_insert_with(|| {
                let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
                Box::pin(async move { orchestrator.wait(&task_id).await })
            });
            tokio::select! {
                biased;
                (follower, event) = &mut self.reading => {
                    self.reading = read_on(follower);
                    let event = match event {
                        Ok(event) => event,
                        Err(error) => {
                            return Err(Refusal::native(OrchestratorError::from(error)).await);
                        }
                    };
                    self.tried = false;
                    if let Some(text) = self.book.read(event)? {
                        return Ok(Heard::Text(text));
                    }
                }
                delta = receive(&mut self.deltas), if listens => match delta {
                    Some(delta) => self.ahead = Some(delta),
                    None => self.deltas = None,
                },
                stopped = resting => match stopped {
                    // Nobody waits for another day.
                    Ok(state) if state.waiting_for == Some(WaitingFor::Budget) => {
                        let payer = state.created.payer;
                        let spent = self.orchestrator.check_budget(payer.as_deref(), None).await;
                        self.resting = Some(Box::pin(std::future::pending()));
                        if let Err(error) = spent {
                            return Err(Refusal::of(error).await);
                        }
                    }
                    // Somebody is asked, or the journal is about to say how it ended: it tells.
                    Ok(_) => self.resting = Some(Box::pin(std::future::pending())),
                    Err(error) => return Err(Refusal::native(error).await),
                },
            }
        }
    }

    /// Ends the task with the calls that its client makes.
    async fn conclude(&mut self) -> Result<(), Refusal> {
        match self.orchestrator.conclude(&self.task_id).await {
            // What it still has to do, or how it ended, is in the journal.
            Ok(_) | Err(OrchestratorError::Ended { .. }) => self.tried = true,
            Err(error) => return Err(Refusal::native(error).await),
        }
        Ok(())
    }
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let event = follower.next().await;
        (follower, event)
    })
}

/// The next delta; `None` behind a gap, and never again then.
async fn receive(deltas: &mut Option<mpsc::Receiver<Delta>>) -> Option<Delta> {
    match deltas {
        None => std::future::pending().await,
        Some(deltas) => deltas.recv().await,
    }
}

impl Book {
    /// Text of this turn, to be told. What the journal told already is old, and what is said again
    /// was told. Whoever joined in the middle waits for the journal: it has the beginning.
    fn hear(&mut self, delta: Delta) -> Option<String> {
        match delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { delta: text })
                if delta.turn == self.turn && self.form == Form::Text && !self.whole =>
            {
                let known = self.told.len().checked_sub(delta.text_at)?;
                text.get(known..).and_then(|more| self.tell(more))
            }
            DeltaEvent::Answer(_) | DeltaEvent::Tool(_) => None,
        }
    }

    fn tell(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let between = if self.spoke && self.told.is_empty() { BETWEEN } else { "" };
        self.told.push_str(text);
        Some(format!("{between}{text}"))
    }

    /// What an event of the journal adds.
    fn read(&mut self, event: Event) -> Result<Option<String>, Refusal> {
        if let EventBody::TaskCreated(created) = &event.body {
            let structured = created.output_schema.is_some();
            self.form = if structured { Form::Json } else { Form::Text };
        } else if let EventBody::StatusChanged(change) = &event.body {
            self.begun = true;
            return self.change(change);
        } else if let EventBody::MessageAppended(appended) = &event.body
            && self.begun
        {
            return self.append(&appended.message);
        } else if let EventBody::UsageRecorded(recorded) = &event.body {
            self.usage += recorded.usage;
            if recorded.purpose.is_none() {
                self.turn += 1;
                self.whole = false;
                self.spoke |= !self.told.is_empty();
                self.told.clear();
            }
        } else if let EventBody::ToolRequested(requested) = event.body {
            self.requested.insert(requested.tool_call_id);
        }
        Ok(None)
    }

    fn append(&mut self, message: &Message) -> Result<Option<String>, Refusal> {
        match message {
            Message::Assistant(answer) => return self.answer(answer),
            Message::ToolResult(result) => {
                self.open.retain(|call| call.id != result.tool_call_id);
            }
            Message::User(_) => {}
        }
        Ok(None)
    }

    /// A whole answer, or what there was of one: what of it was not told.
    fn answer(&mut self, answer: &AssistantMessage) -> Result<Option<String>, Refusal> {
        self.whole = true;
        self.stop = Some(answer.stop_reason);
        self.open = answer.tool_calls().cloned().collect();
        self.requested.clear();
        if self.form == Form::Json {
            return Ok(None);
        }
        let text = answer.text();
        let Some(rest) = text.strip_prefix(self.told.as_str()) else {
            let message = "the answer was begun again, and went another way: ask again";
            let refusal = Refusal::new(StatusCode::BAD_GATEWAY, message);
            return Err(refusal.coded("begun_again"));
        };
        Ok(self.tell(rest))
    }

    /// Whether all that is open is for the client to do.
    fn waits_for_client(&self) -> bool {
        let with_client = |call: &ToolCallBlock| self.requested.contains(&call.id);
        !self.open.is_empty() && self.open.iter().all(with_client)
    }

    fn change(&mut self, change: &StatusChanged) -> Result<Option<String>, Refusal> {
        match change.status {
            TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => Ok(None),
            TaskStatus::Completed => Ok(self.complete(change.detail.as_ref())),
            TaskStatus::Canceled => Err(Refusal::canceled()),
            TaskStatus::Failed => {
                let refused = |detail: &Value| detail["code"] == "refused";
                if change.detail.as_ref().is_some_and(refused) {
                    self.end(Reason::ContentFilter, Vec::new());
                    return Ok(None);
                }
                Err(Refusal::failed(change.detail.as_ref()))
            }
        }
    }

    fn complete(&mut self, result: Option<&Value>) -> Option<String> {
        let calls: Vec<ToolCallBlock> = std::mem::take(&mut self.open);
        let calls: Vec<_> =
            calls.into_iter().filter(|call| self.requested.contains(&call.id)).collect();
        if !calls.is_empty() {
            self.end(Reason::ToolCalls, calls);
            return None;
        }
        let length = self.stop == Some(StopReason::Length);
        self.end(if length { Reason::Length } else { Reason::Stop }, Vec::new());
        // What was delivered, and not said.
        match result {
            Some(result) if self.form == Form::Json => Some(result.to_string()),
            Some(Value::String(text)) if !self.spoke => self.tell(text),
            Some(Value::Null | Value::String(_)) | None => None,
            Some(result) if !self.spoke => Some(result.to_string()),
            Some(_) => None,
        }
    }

    fn end(&mut self, reason: Reason, calls: Vec<ToolCallBlock>) {
        self.ending = Some(Ending { reason, calls, usage: self.usage });
    }
}
