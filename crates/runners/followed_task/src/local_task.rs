//! The local task, read from its events: how it began, up to which remote event it is relayed, and which
//! commands arrived since.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Appended, HistoryExtent, JournalError, Read, RunnerError, TaskJournal};
use antiphon_core::{
    Event, EventBody, Message, PeerTasks, Position, Relayed, Seq, StatusChanged, TaskCreated,
    TaskId, TaskStatus, UserMessage, WaitingFor, sendable,
};

use serde_json::Value;

use crate::control::ControlCommand;

/// The member of a status's `detail` in which a runner keeps what it needs after a restart.
pub const RUNNER_NOTE: &str = "note";

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The local task.
pub struct LocalTask {
    /// Its id.
    pub task_id: TaskId,
    /// How it began.
    pub created: TaskCreated,
    /// Number of its last event.
    pub seq: Seq,
    position: Position,
    /// Whether it has ended here.
    pub ended: bool,
    /// Its last status.
    pub status: TaskStatus,
    waiting_for: Option<WaitingFor>,
    /// Its last status that is not a wait for the peer.
    pub status_before_wait: StatusChanged,
    /// The last remote event that is relayed.
    pub relayed: Option<Relayed>,
    /// Commands that are not forwarded yet.
    pub commands: Vec<ControlCommand>,
    /// Tasks below the remote task, as they are recorded here.
    pub peer_tasks: PeerTasks,
    /// What the runner noted last: the member [`RUNNER_NOTE`] of the detail of a status.
    pub note: Option<Value>,
    /// Messages from before the first relayed event.
    conversation: ConversationPart,
}

/// Messages of a conversation, and what of them and of those before them the model reads.
#[derive(Default)]
struct ConversationPart {
    /// Index of the first message here, counted over the conversation.
    first: u64,
    messages: Vec<Arc<Message>>,
    /// A summary, and the index of the first message that is still read, counted over the conversation.
    compacted: Option<(String, u64)>,
}

impl ConversationPart {
    fn apply(&mut self, body: &EventBody) {
        if let EventBody::MessageAppended(appended) = body {
            self.messages.push(Arc::clone(&appended.message));
        } else if let EventBody::Compacted(compacted) = body {
            self.compacted = Some((compacted.summary.clone(), compacted.kept_from));
        }
    }

    /// The messages with a summary in place of the older ones.
    fn read_by_model(self) -> Vec<Arc<Message>> {
        let Self { first, mut messages, compacted } = self;
        let Some((summary, kept_from)) = compacted else { return messages };
        let kept_from = usize::try_from(kept_from.saturating_sub(first)).unwrap_or(usize::MAX);
        let at = messages.last().map_or_else(Default::default, |last| last.timestamp());
        let summary = Arc::new(UserMessage::text(summary, at).into());
        messages.splice(..kept_from.min(messages.len()), [summary]);
        messages
    }
}

impl LocalTask {
    /// Reads the task.
    pub async fn read(journal: &dyn TaskJournal, task_id: &TaskId) -> Result<Self, RunnerError> {
        let none = || RunnerError::Refused { reason: format!("there is no task {task_id}") };
        let page = page(journal, task_id, Position(0)).await?;
        let first = page.first().ok_or_else(none)?;
        let EventBody::TaskCreated(created) = &first.body else { return Err(none()) };
        let mut task = Self {
            task_id: task_id.clone(),
            created: created.clone(),
            seq: first.seq,
            position: first.position,
            ended: false,
            status: TaskStatus::Pending,
            note: None,
            waiting_for: None,
            status_before_wait: StatusChanged::new(TaskStatus::Running),
            relayed: None,
            commands: Vec::new(),
            peer_tasks: PeerTasks::default(),
            conversation: ConversationPart::default(),
        };
        task.catch_up(journal).await?;
        Ok(task)
    }

    /// Reads the events that other writers appended since.
    pub async fn catch_up(&mut self, journal: &dyn TaskJournal) -> Result<(), JournalError> {
        loop {
            let events = page(journal, &self.task_id, self.position).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                (self.seq, self.position) = (event.seq, event.position);
                if let EventBody::StatusChanged(change) = &event.body {
                    self.commands.extend(ControlCommand::of(change, self.waiting_for));
                }
                self.apply(&event.body);
            }
        }
    }

    /// Applies the events that this runner appended: they hold no command to forward.
    pub fn appended(&mut self, events: &[EventBody], appended: &Appended) {
        (self.seq, self.position) = (appended.seq, appended.position);
        for body in events {
            self.apply(body);
        }
    }

    /// Whether it is recorded that the peer is away.
    pub fn waits_for_peer(&self) -> bool {
        self.waiting_for == Some(WaitingFor::Peer)
    }

    /// Whether it waits for a person.
    pub fn waits_for_resume(&self) -> bool {
        self.waiting_for == Some(WaitingFor::Resume)
    }

    fn apply(&mut self, body: &EventBody) {
        self.ended |= body.ends_task();
        if let EventBody::StatusChanged(change) = body {
            (self.status, self.waiting_for) = (change.status, change.waiting_for);
            let note = change.detail.as_ref().and_then(|detail| detail.get(RUNNER_NOTE));
            self.note = note.cloned().or(self.note.take());
            if !self.waits_for_peer() {
                self.status_before_wait = change.clone();
            }
        }
        if let EventBody::Relayed(relayed) = body {
            self.apply_mark(relayed);
        } else if self.relayed.is_none() {
            self.conversation.apply(body);
        }
    }

    fn apply_mark(&mut self, relayed: &Relayed) {
        self.peer_tasks.apply(relayed);
        // The same mark without tasks is not of this runner: it records the key of a message.
        if self.relayed.as_ref() == Some(relayed) {
            return;
        }
        self.relayed = Some(relayed.mark());
        // Commands before it were forwarded before it was appended.
        self.commands.clear();
    }

    /// What a model here would read: the messages from before the first relayed event, of the tasks before this one and
    /// of this one, without calls that have no result.
    pub async fn history(
        &self,
        journal: &dyn TaskJournal,
    ) -> Result<Vec<Arc<Message>>, RunnerError> {
        let mut read = ConversationPart::default();
        if let Some(before) = &self.created.history {
            // One read, however many tasks there were before.
            let history = journal.history(before.clone(), HistoryExtent::Recent).await?;
            read.first = history.first;
            for event in &history.events {
                read.apply(&event.body);
            }
        }
        read.messages.extend(self.conversation.messages.iter().map(Arc::clone));
        read.compacted = self.conversation.compacted.clone().or(read.compacted);
        Ok(sendable(&read.read_by_model()))
    }
}

async fn page(
    journal: &dyn TaskJournal,
    task_id: &TaskId,
    after: Position,
) -> Result<Vec<Event>, JournalError> {
    let read = Read { task_id: Some(task_id.clone()), after, limit: PAGE };
    Ok(journal.read(read).await?.events)
}

#[cfg(test)]
mod tests {
    use antiphon_core::port::{Clock, SystemClock};

    use super::*;

    #[test]
    fn a_summary_counts_the_messages_that_were_not_read() {
        let at = SystemClock.now();
        let said = |text: &str| -> Arc<Message> { Arc::new(UserMessage::text(text, at).into()) };
        let messages: Vec<_> = ["ten", "eleven", "twelve"].map(said).to_vec();
        let of = |compacted: Option<u64>| {
            let compacted = compacted.map(|kept_from| ("before".to_owned(), kept_from));
            ConversationPart { first: 10, messages: messages.clone(), compacted }.read_by_model()
        };
        assert_eq!(of(None), messages);
        assert_eq!(of(Some(11)), [said("before"), said("eleven"), said("twelve")]);
        assert_eq!(of(Some(10)).len(), 4, "all of them are kept");
        assert_eq!(of(Some(99)), [said("before")]);
    }
}
