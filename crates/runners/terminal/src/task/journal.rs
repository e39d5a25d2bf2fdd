//! The task in the journal, as far as a terminal needs it: messages to type, and how often the
//! program was started. Both are recorded before they happen.
//!
//! A start is recorded as `status_changed` to `running`, with this `detail`: `{"attempt": 2,
//! "typed": 2, "reason": "…"}`. `typed` is the `seq` of the last message of the task's creation
//! that was typed; messages from the inbox are recorded as `message_appended` with `queued`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError, Read, TaskJournal};
use antiphon_core::{
    Event, EventBody, HandlingMode, Message, MessageAppended, MessageQueued, Position, Seq,
    StatusChanged, TaskId, TaskStatus, UserMessage,
};
use chrono::Utc;
use serde::{Deserialize, Serialize};

/// Events read at once.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// The task in the journal.
pub(crate) struct JournalView {
    journal: Arc<dyn TaskJournal>,
    task_id: TaskId,
    seq: Seq,
    position: Position,
    /// The system prompt.
    pub(crate) context: String,
    has_ended: bool,
    /// Messages of the task's creation that are not typed yet, in order.
    initial: Vec<(Seq, UserMessage)>,
    /// Queued messages that are not typed yet, in order.
    queue: Vec<MessageQueued>,
    progress: RunProgress,
}

/// How urgent a pending message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It waits until the screen is still.
    Queue,
    /// It is typed at once.
    Steer,
}

/// Progress of a terminal: the `detail` of `running`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RunProgress {
    /// Number of starts of the program.
    attempt: u32,
    /// Seq of the last message of the task's creation that was typed.
    #[serde(default)]
    typed: Seq,
    /// Why the program was started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl JournalView {
    pub(crate) async fn open(
        journal: Arc<dyn TaskJournal>,
        task_id: TaskId,
    ) -> Result<Self, JournalError> {
        let mut journal = Self {
            journal,
            task_id,
            seq: Seq(0),
            position: Position(0),
            context: String::new(),
            has_ended: false,
            initial: Vec::new(),
            queue: Vec::new(),
            progress: RunProgress::default(),
        };
        journal.catch_up().await?;
        Ok(journal)
    }

    /// Reads the events since the last read.
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

    /// Seq of the task's last event.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Number of starts of the program.
    pub(crate) fn attempts(&self) -> u32 {
        self.progress.attempt
    }

    /// The urgency of the most urgent pending message.
    pub(crate) fn waiting(&self) -> Option<Urgency> {
        if self.queue.iter().any(|queued| queued.mode == HandlingMode::Steer) {
            return Some(Urgency::Steer);
        }
        (!self.initial.is_empty() || !self.queue.is_empty()).then_some(Urgency::Queue)
    }

    /// Records another start of the program.
    pub(crate) async fn begin(&mut self, reason: Option<String>) -> Result<(), JournalError> {
        let progress =
            RunProgress { attempt: self.progress.attempt + 1, reason, ..self.progress.clone() };
        self.write(running(&progress)).await
    }

    /// Records that the next message is typed, and returns it. `None` if none is pending. The
    /// caller types it once.
    pub(crate) async fn take(&mut self) -> Result<Option<UserMessage>, JournalError> {
        loop {
            let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer;
            let queued = self.queue.iter().find(steers);
            let (body, message) = match (queued, self.initial.first(), self.queue.first()) {
                (None, Some((seq, message)), _) => {
                    let progress =
                        RunProgress { typed: *seq, reason: None, ..self.progress.clone() };
                    (running(&progress), message.clone())
                }
                (Some(queued), _, _) | (None, None, Some(queued)) => {
                    let user = queued.user_message(Utc::now());
                    let message = Arc::new(Message::User(user.clone()));
                    let appended = MessageAppended { message, queued: Some(queued.id) };
                    (appended.into(), user)
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

    /// Records how the task ended.
    pub(crate) async fn end(
        &mut self,
        status: TaskStatus,
        detail: serde_json::Value,
    ) -> Result<(), JournalError> {
        let change = StatusChanged { status, detail: Some(detail), waiting_for: None };
        self.write(change.into()).await
    }

    /// Appends an event, after any events appended by others meanwhile.
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
            if let Some(progress) = change.detail.and_then(|it| RunProgress::deserialize(it).ok()) {
                self.initial.retain(|(seq, _)| *seq > progress.typed);
                self.progress = progress;
            }
        } else if let EventBody::MessageQueued(queued) = event.body {
            self.queue.push(queued);
        } else if let EventBody::MessageAppended(appended) = event.body
            && appended.queued.is_none()
        {
            self.add_message(event.seq, &appended.message);
        }
    }

    fn add_message(&mut self, seq: Seq, message: &Message) {
        match message {
            Message::User(user) => self.initial.push((seq, user.clone())),
            Message::Assistant(_) | Message::ToolResult(_) => {}
        }
    }
}

fn running(progress: &RunProgress) -> EventBody {
    let detail = serde_json::to_value(progress).ok();
    StatusChanged { status: TaskStatus::Running, detail, waiting_for: None }.into()
}
