//! The task in the journal, as far as a terminal needs it: messages to type, and how often the
//! program was started. Both are recorded before they happen.
//!
//! A start is recorded as `status_changed` to `running`, with this `detail`: `{"attempt": 2,
//! "typed": 2, "reason": "…", "waits": "…"}`. `typed` is the `seq` of the last message of the task's
//! creation that was typed; messages from the inbox are recorded as `message_appended` with `queued`.
//! `waits` says why the next message is not typed.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError, Read, TaskJournal};
use antiphon_core::{
    ApprovalId, Event, EventBody, HandlingMode, InputBlock, InteractionId, Message,
    MessageAppended, MessageQueued, Position, Seq, StatusChanged, TaskId, TaskStatus, UserMessage,
    WaitingFor,
};
use chrono::Utc;
use serde::{Deserialize, Serialize};

/// Events read at once.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// Most pending messages that are considered at a time; further ones wait.
const PENDING_MAX: usize = 64;

/// The task in the journal.
pub(crate) struct JournalView {
    journal: Arc<dyn TaskJournal>,
    task_id: TaskId,
    seq: Seq,
    position: Position,
    /// The system prompt.
    pub(crate) context: String,
    /// Name of the agent.
    pub(crate) agent: String,
    has_ended: bool,
    is_resident: bool,
    /// A user paused the task.
    is_paused: bool,
    /// Messages of the task's creation that are not typed yet, in order.
    initial: Vec<(Seq, UserMessage)>,
    /// Queued messages that are not typed yet, in order.
    queue: Vec<MessageQueued>,
    progress: RunProgress,
    /// Questions to a person without an answer.
    questions: HashSet<ApprovalId>,
    answers: Answers,
}

/// A message that is not typed yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingMessage {
    pub(crate) source: MessageSource,
    pub(crate) message: UserMessage,
}

/// Where a pending message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MessageSource {
    /// It came with the task.
    Creation(Seq),
    /// It is in the inbox.
    Inbox(InteractionId),
}

/// Number of answers to questions that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answers {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
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
    /// Why the next message is not typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
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
            agent: String::new(),
            has_ended: false,
            is_resident: false,
            is_paused: false,
            initial: Vec::new(),
            queue: Vec::new(),
            progress: RunProgress::default(),
            questions: HashSet::new(),
            answers: Answers::default(),
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

    /// Whether the task reads the inbox of its agent.
    pub(crate) fn is_resident(&self) -> bool {
        self.is_resident
    }

    /// Whether a person has to answer a question about this task.
    pub(crate) fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    pub(crate) fn answers(&self) -> Answers {
        self.answers
    }

    /// The messages that are not typed yet, in the order in which they are typed: those that steer, then
    /// the next one of the task's creation, then the others of the inbox. None while the task is paused.
    pub(crate) fn pending(&self) -> Vec<PendingMessage> {
        if self.is_paused {
            return Vec::new();
        }
        let queued = |queued: &MessageQueued| {
            let mut message = queued.user_message(Utc::now());
            if queued.expects_answer() {
                let how = format!(" (answer it: antiphon reply {} TEXT)", queued.id);
                match message.content.last_mut() {
                    Some(InputBlock::Text(text)) => text.text.push_str(&how),
                    Some(InputBlock::Image(_)) | None => {
                        message.content.push(InputBlock::text(how));
                    }
                }
            }
            PendingMessage { source: MessageSource::Inbox(queued.id), message }
        };
        let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer;
        let first = self.initial.first().map(|(seq, message)| PendingMessage {
            source: MessageSource::Creation(*seq),
            message: message.clone(),
        });
        let steering = self.queue.iter().filter(steers).map(queued);
        let others = self.queue.iter().filter(|waiting| !steers(waiting)).map(queued);
        steering.chain(first).chain(others).take(PENDING_MAX).collect()
    }

    /// Records another start of the program.
    pub(crate) async fn begin(&mut self, reason: Option<String>) -> Result<(), JournalError> {
        let attempt = self.progress.attempt + 1;
        let progress = RunProgress { attempt, reason, waits: None, ..self.progress.clone() };
        self.write(running(&progress)).await
    }

    /// Records why the next message is not typed, unless that is recorded already.
    pub(crate) async fn note_wait(&mut self, waits: Option<String>) -> Result<(), JournalError> {
        // A paused task stays paused.
        if self.progress.waits == waits || self.is_paused {
            return Ok(());
        }
        let progress = RunProgress { waits, reason: None, ..self.progress.clone() };
        self.write(running(&progress)).await
    }

    /// Records that a message is typed. The caller types it once. False if it is not pending any more.
    pub(crate) async fn take(&mut self, taken: &PendingMessage) -> Result<bool, JournalError> {
        loop {
            let body = match taken.source {
                MessageSource::Creation(seq) => {
                    if !self.initial.iter().any(|(waiting, _)| *waiting == seq) {
                        return Ok(false);
                    }
                    let typed = seq;
                    running(&RunProgress { typed, reason: None, ..self.progress.clone() })
                }
                MessageSource::Inbox(id) => {
                    if !self.queue.iter().any(|waiting| waiting.id == id) {
                        return Ok(false);
                    }
                    let message = Arc::new(Message::User(taken.message.clone()));
                    MessageAppended::of_queued(message, id).into()
                }
            };
            match self.append(body).await {
                Ok(()) => return Ok(true),
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
            self.agent = created.agent;
            self.is_resident = created.resident;
        } else if let EventBody::HandedOver(over) = event.body {
            self.context = over.system_prompt;
        } else if let EventBody::StatusChanged(change) = event.body {
            self.has_ended |= change.status.is_terminal();
            self.is_paused = change.waiting_for == Some(WaitingFor::Resume);
            if let Some(progress) = change.detail.and_then(|it| RunProgress::deserialize(it).ok()) {
                self.initial.retain(|(seq, _)| *seq > progress.typed);
                self.progress = progress;
            }
        } else if let EventBody::ApprovalRequested(asked) = event.body {
            self.questions.insert(asked.approval_id);
        } else if let EventBody::ApprovalDecided(decided) = event.body {
            self.questions.remove(&decided.approval_id);
            if decided.decision.allows() {
                self.answers.allowed += 1;
            } else {
                self.answers.denied += 1;
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
