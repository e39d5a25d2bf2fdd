//! Records of the follower in the local task.

use a2a::{Message, Role, Task, TaskState, TaskStatus};
use antiphon_core::port::{AnswerChange, Append, Clock, Expected, JournalError, SystemClock};
use antiphon_core::{
    AssistantBlock, AssistantMessage, EventBody, MessageAppended, Relayed, Seq, StatusChanged,
    StopReason, TaskId, TaskStatus as OwnStatus, TextBlock, Usage, WaitingFor,
};
use antiphon_followed_task::{RUNNER_NOTE, add_mark};
use serde_json::{Value, json};

use super::{Follower, MESSAGES_MAX, Stop};
use crate::failure::{Failure, words};
use crate::note::Note;
use crate::part_text::{of_artifacts, of_parts, only_data};
use crate::question;
use crate::remote_work::TextChange;

impl Follower {
    /// Records which remote task it is. From here on it is not sent again.
    pub(super) async fn record_begin(&mut self, id: &str, context: &str) -> Result<(), Stop> {
        let task_id = TaskId::parse(id)
            .map_err(|error| Failure::Refused(format!("the id of its task: {error}")))?;
        self.note = Note::of_context(context);
        let running = self.running();
        self.append(vec![running], Some(Relayed { task_id, seq: Seq(0), tasks: Vec::new() })).await
    }

    /// The remote agent answers again, after the task waited for it.
    pub(super) async fn record_contact(&mut self) -> Result<(), Stop> {
        if !self.local.waits_for_peer() {
            return Ok(());
        }
        let before = self.local.status_before_wait.clone();
        self.append(vec![before.into()], None).await
    }

    /// Records that a person interrupted the task: it waits for a resume. The remote agent works on.
    pub(super) async fn record_interrupt(&mut self) -> Result<(), Stop> {
        let detail = Some(json!({ "code": "interrupted" }));
        let (status, waiting_for) = (OwnStatus::InputRequired, Some(WaitingFor::Resume));
        self.append(vec![StatusChanged { status, detail, waiting_for }.into()], None).await
    }

    /// Records what is new in a task as a whole.
    pub(super) async fn record_task(&mut self, mut task: Task) -> Result<(), Stop> {
        let change = self.work.replace(&mut task)?;
        if !task.status.state.is_terminal() {
            self.show(change);
        }
        for message in task.history.take().unwrap_or_default() {
            self.record_message(&message).await?;
        }
        self.record_status(&task.status).await
    }

    /// Records a message of the agent, once. A message of another role is not recorded: it came from here.
    pub(super) async fn record_message(&mut self, message: &Message) -> Result<(), Stop> {
        let text = of_parts(&message.parts);
        if message.role != Role::Agent || text.is_empty() || self.note.has(message) {
            return Ok(());
        }
        if self.recorded == MESSAGES_MAX {
            let reason = format!("it sent more than {MESSAGES_MAX} messages");
            return Err(Failure::Refused(reason).into());
        }
        self.recorded += 1;
        self.note.add(message, &text);
        let mut events = vec![assistant(text)];
        // The note is kept with the message. A question keeps its status.
        events.push(match &self.note.question {
            Some(_) => self.same_status(),
            None => self.running(),
        });
        self.append(events, None).await
    }

    /// The last status with the note of now.
    fn same_status(&self) -> EventBody {
        let mut change = self.local.status_before_wait.clone();
        if let Some(Value::Object(detail)) = &mut change.detail {
            detail.insert(RUNNER_NOTE.to_owned(), json!(self.note));
        }
        change.into()
    }

    /// Records a status of the remote task.
    pub(super) async fn record_status(&mut self, status: &TaskStatus) -> Result<(), Stop> {
        let state = &status.state;
        if state.is_terminal() {
            return self.record_end(status).await;
        }
        let asks = matches!(state, TaskState::InputRequired | TaskState::AuthRequired);
        if !asks && self.note.question.take().is_some() {
            let running = self.running();
            self.append(vec![running], None).await?;
        }
        if let Some(message) = &status.message {
            self.record_message(message).await?;
        }
        if asks && self.note.question.as_ref() != Some(&question::id(status)) {
            self.note.question = Some(question::id(status));
            let Some(relayed) = &self.local.relayed else { return Ok(()) };
            let change = question::waits(&self.agent.name, &relayed.task_id, status, &self.note);
            self.append(vec![change.into()], None).await?;
        }
        Ok(())
    }

    /// Records the answer of an agent that made no task of the message.
    pub(super) async fn record_answer(&mut self, message: &Message) -> Result<(), Stop> {
        let text = of_parts(&message.parts);
        let events = self.completion(text, only_data(&message.parts).cloned());
        self.append(events, None).await
    }

    async fn record_end(&mut self, status: &TaskStatus) -> Result<(), Stop> {
        let message = status.message.as_ref();
        let said = message.map(|message| of_parts(&message.parts)).unwrap_or_default();
        let failed = |code: &str| {
            let error = format!("the remote agent `{}`: {}", self.agent.name, words(&said));
            let detail = Some(json!({ "code": code, "error": error }));
            vec![StatusChanged { detail, ..StatusChanged::new(OwnStatus::Failed) }.into()]
        };
        let events = match status.state {
            TaskState::Completed => {
                let artifacts = self.work.artifacts();
                let data = match artifacts {
                    [artifact] => only_data(&artifact.parts).cloned(),
                    _ => None,
                };
                let text = of_artifacts(artifacts);
                self.completion(if artifacts.is_empty() { said } else { text }, data)
            }
            TaskState::Canceled => vec![StatusChanged::new(OwnStatus::Canceled).into()],
            TaskState::Rejected => failed("refused"),
            TaskState::Failed
            | TaskState::Unspecified
            | TaskState::Submitted
            | TaskState::Working
            | TaskState::InputRequired
            | TaskState::AuthRequired => failed("remote_failed"),
        };
        self.append(events, None).await?;
        Err(Stop::Done)
    }

    /// The events of a completed task. A result that does not fit the schema of the task fails it.
    fn completion(&self, text: String, data: Option<Value>) -> Vec<EventBody> {
        let mut events = Vec::new();
        if !text.is_empty() && !self.note.is_last(&text) {
            events.push(assistant(text.clone()));
        }
        events.push(match self.result(text, data) {
            Ok(result) => {
                let detail = Some(result);
                StatusChanged { detail, ..StatusChanged::new(OwnStatus::Completed) }.into()
            }
            Err(reason) => {
                let error =
                    format!("the result of the remote agent `{}`: {reason}", self.agent.name);
                let detail = Some(json!({ "code": "remote_failed", "error": error }));
                StatusChanged { detail, ..StatusChanged::new(OwnStatus::Failed) }.into()
            }
        });
        events
    }

    fn result(&self, text: String, data: Option<Value>) -> Result<Value, String> {
        let Some(schema) = &self.local.created.output_schema else {
            return Ok(Value::String(text));
        };
        let schema: Value = schema.to().map_err(|error| error.to_string())?;
        let schema = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        let value = match data {
            Some(data) => data,
            None => serde_json::from_str(&text).map_err(|_| "it is not JSON".to_owned())?,
        };
        let wrong = schema.validate(&value).err().map(|error| words(&error.to_string()));
        match wrong {
            None => Ok(value),
            Some(reason) => Err(format!("it does not fit the schema: {reason}")),
        }
    }

    /// Shows how the text of the remote agent grows.
    pub(super) fn show(&self, change: TextChange) {
        let after = self.local.seq;
        match change {
            TextChange::Nothing => {}
            TextChange::More(text) => self.display.show(after, AnswerChange::More(&text)),
            TextChange::Anew(text) => {
                self.display.show(after, AnswerChange::Superseded);
                self.display.show(after, AnswerChange::More(&text));
            }
        }
    }

    fn running(&self) -> EventBody {
        let detail = Some(self.note.detail());
        StatusChanged { detail, ..StatusChanged::new(OwnStatus::Running) }.into()
    }

    /// Appends events with the mark of the remote task. When another writer was faster, its commands come first.
    async fn append(
        &mut self,
        mut events: Vec<EventBody>,
        first: Option<Relayed>,
    ) -> Result<(), Stop> {
        let mark = first.or_else(|| {
            let relayed = self.local.relayed.clone()?;
            Some(Relayed { seq: Seq(relayed.seq.0 + 1), ..relayed })
        });
        let ends = add_mark(&mut events, mark);
        loop {
            let append = Append {
                task_id: self.local.task_id.clone(),
                expected: Expected::At(self.local.seq),
                at: SystemClock.now(),
                events: events.clone(),
                key: None,
            };
            match self.journal.append(append).await {
                Ok(appended) => {
                    self.local.appended(&events, &appended);
                    if ends {
                        self.display.show(self.local.seq, AnswerChange::Complete);
                        return Err(Stop::Done);
                    }
                    return Ok(());
                }
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    self.catch_up().await?;
                }
                // It may be paused since.
                Err(error @ JournalError::Invalid { .. }) => {
                    self.catch_up().await?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what other writers appended here. If another follower of the same task got further, this one starts over.
    pub(super) async fn catch_up(&mut self) -> Result<(), Stop> {
        let before = self.local.relayed.clone();
        self.local.catch_up(&*self.journal).await?;
        if self.local.relayed != before {
            let reason = "another follower of the same task is ahead".to_owned();
            return Err(Failure::Unreachable(reason).into());
        }
        if self.local.ended {
            return Ok(());
        }
        self.check_commands()
    }
}

fn assistant(text: String) -> EventBody {
    let message = AssistantMessage {
        content: vec![AssistantBlock::Text(TextBlock { text })],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: SystemClock.now(),
    };
    MessageAppended::new(message).into()
}
