//! The task in the journal, as far as a terminal needs it: what is to be typed, and how often the
//! program was begun. What is typed, or begun, is written down before.
//!
//! Beginnings stand in the journal as `status_changed` to `running`, with this `detail`:
//! `{"attempt": 2, "typed": 2, "reason": "…"}`. `typed` is the `seq` of the last message of those
//! that the task was created with that was typed in; messages from the inbox are written down as
//! `message_appended` with `queued`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError, Read, TaskJournal};
use antiphon_core::{
    Event, EventBody, HandlingMode, Message, MessageAppended, MessageQueued, Position, Seq,
    StatusChanged, TaskId, TaskStatus, UserMessage,
};
use chrono::Utc;
use serde::{Deserialize, Serialize};

/// Events that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// The task in the journal.
pub(crate) struct Ledger {
    journal: Arc<dyn TaskJournal>,
    task_id: TaskId,
    seq: Seq,
    position: Position,
    /// The scene.
    pub(crate) context: String,
    has_ended: bool,
    /// What the task was created with and nobody typed, in order.
    first: Vec<(Seq, UserMessage)>,
    /// What arrived since and nobody typed, in order.
    queue: Vec<MessageQueued>,
    note: Note,
}

/// A message that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Until the screen is still.
    Queue,
    /// For nothing.
    Steer,
}

/// How far a terminal got: the `detail` of `running`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// How often the program was begun.
    attempt: u32,
    /// The last of the first messages that was typed.
    #[serde(default)]
    typed: Seq,
    /// Why it was begun again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Ledger {
    pub(crate) async fn open(
        journal: Arc<dyn TaskJournal>,
        task_id: TaskId,
    ) -> Result<Self, JournalError> {
        let mut ledger = Self {
            journal,
            task_id,
            seq: Seq(0),
            position: Position(0),
            context: String::new(),
            has_ended: false,
            first: Vec::new(),
            queue: Vec::new(),
            note: Note::default(),
        };
        ledger.catch_up().await?;
        Ok(ledger)
    }

    /// Reads what was written since.
    pub(crate) async fn catch_up(&mut self) -> Result<(), JournalError> {
        loop {
            let read =
                Read { task_id: Some(self.task_id.clone()), after: self.position, limit: PAGE };
            let page = self.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(());
            }
            for event in page.events {
                self.apply(event);
            }
            self.position = page.next;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Its last event.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// How often the program was begun.
    pub(crate) fn attempts(&self) -> u32 {
        self.note.attempt
    }

    /// Whether something waits to be typed, and how urgently.
    pub(crate) fn waiting(&self) -> Option<Urgency> {
        if self.queue.iter().any(|queued| queued.mode == HandlingMode::Steer) {
            return Some(Urgency::Steer);
        }
        (!self.first.is_empty() || !self.queue.is_empty()).then_some(Urgency::Queue)
    }

    /// Writes down that the program is begun once more.
    pub(crate) async fn begin(&mut self, reason: Option<String>) -> Result<(), JournalError> {
        let note = Note { attempt: self.note.attempt + 1, reason, ..self.note.clone() };
        self.write(running(&note)).await
    }

    /// Writes down that the next message is typed, and hands it out; `None` if nothing waits. Who
    /// gets it types it once.
    pub(crate) async fn take(&mut self) -> Result<Option<UserMessage>, JournalError> {
        loop {
            let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer;
            let queued = self.queue.iter().find(steers);
            let (body, message) = match (queued, self.first.first(), self.queue.first()) {
                (None, Some((seq, message)), _) => {
                    let note = Note { typed: *seq, reason: None, ..self.note.clone() };
                    (running(&note), message.clone())
                }
                (Some(queued), _, _) | (None, None, Some(queued)) => {
                    let said = queued.user_message(Utc::now());
                    let message = Arc::new(Message::User(said.clone()));
                    let appended = MessageAppended { message, queued: Some(queued.id) };
                    (appended.into(), said)
                }
                (None, None, None) => return Ok(None),
            };
            match self.append(body).await {
                Ok(()) => return Ok(Some(message)),
                Err(JournalError::Stale { .. }) => self.catch_up().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes down how the task ended.
    pub(crate) async fn end(
        &mut self,
        status: TaskStatus,
        detail: serde_json::Value,
    ) -> Result<(), JournalError> {
        let change = StatusChanged { status, detail: Some(detail), waiting_for: None };
        self.write(change.into()).await
    }

    /// Whatever somebody else wrote meanwhile.
    async fn write(&mut self, body: EventBody) -> Result<(), JournalError> {
        loop {
            match self.append(body.clone()).await {
                Err(JournalError::Stale { .. }) => self.catch_up().await?,
                done => return done,
            }
        }
    }

    async fn append(&mut self, body: EventBody) -> Result<(), JournalError> {
        let append = Append {
            task_id: self.task_id.clone(),
            expected: Expected::At(self.seq),
            at: Utc::now(),
            events: vec![body],
            key: None,
        };
        self.journal.append(append).await?;
        self.catch_up().await
    }

    fn apply(&mut self, event: Event) {
        self.seq = event.seq;
        if let Some(id) = event.body.leaves_inbox() {
            self.queue.retain(|waiting| waiting.id != id);
        }
        if let EventBody::TaskCreated(created) = event.body {
            self.context = created.system_prompt;
        } else if let EventBody::HandedOver(over) = event.body {
            self.context = over.system_prompt;
        } else if let EventBody::StatusChanged(change) = event.body {
            self.has_ended |= change.status.is_terminal();
            if let Some(note) = change.detail.and_then(|it| Note::deserialize(it).ok()) {
                self.first.retain(|(seq, _)| *seq > note.typed);
                self.note = note;
            }
        } else if let EventBody::MessageQueued(queued) = event.body {
            self.queue.push(queued);
        } else if let EventBody::MessageAppended(appended) = event.body
            && appended.queued.is_none()
        {
            self.hear(event.seq, &appended.message);
        }
    }

    fn hear(&mut self, seq: Seq, message: &Message) {
        match message {
            Message::User(user) => self.first.push((seq, user.clone())),
            Message::Assistant(_) | Message::ToolResult(_) => {}
        }
    }
}

fn running(note: &Note) -> EventBody {
    let detail = serde_json::to_value(note).ok();
    StatusChanged { status: TaskStatus::Running, detail, waiting_for: None }.into()
}
