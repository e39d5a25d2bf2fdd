//! A conversation as the log holds it: the messages of a task, after those of the tasks it continues.

use std::num::NonZeroUsize;

use super::{JournalError, JournalLog, Read};
use crate::{
    Event, EventBody, HistoryRef, Message, MessageAppended, Position, StatusChanged, TaskId,
};

/// Most tasks that one conversation spans.
pub const HISTORY_TASKS_MAX: usize = 10_000;

/// Which messages of a conversation are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryExtent {
    /// Every message.
    All,
    /// What the work goes on with: the messages that the last compaction kept and those behind it, and in any case the
    /// last message of the user and the last complete answer with what follows them. Without a compaction, every message.
    Recent,
}

/// A conversation up to an event, or its recent part.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Index of the first message here, counted from 0 over the whole conversation.
    pub first: u64,
    /// The events `message_appended`, and the last `compacted`, in their order.
    pub events: Vec<Event>,
}

/// Collects a [`History`] from its end to its beginning, so that a journal reads no more than it returns.
#[derive(Debug)]
pub struct HistoryCollector {
    extent: HistoryExtent,
    /// Number of messages before those that were added.
    before: u64,
    /// What the last compaction kept, and the number of messages at that time.
    compaction: Option<(u64, u64)>,
    has_request: bool,
    has_answer: bool,
    /// The newest first.
    events: Vec<Event>,
}

impl HistoryCollector {
    /// A conversation of that many messages.
    pub fn new(messages: u64, extent: HistoryExtent) -> Self {
        Self {
            extent,
            before: messages,
            compaction: None,
            has_request: false,
            has_answer: false,
            events: Vec::new(),
        }
    }

    /// Adds the event before those added so far. Any but the events of a [`History`] is left out.
    pub fn add(&mut self, event: Event) {
        if let EventBody::MessageAppended(MessageAppended { message, .. }) = &event.body {
            self.before = self.before.saturating_sub(1);
            match &**message {
                Message::User(_) => self.has_request = true,
                Message::Assistant(answer) => self.has_answer |= answer.is_complete(),
                Message::ToolResult(_) => {}
            }
            self.events.push(event);
        } else if let EventBody::Compacted(compacted) = &event.body
            // An earlier compaction has no effect behind a later one.
            && self.compaction.is_none()
        {
            self.compaction = Some((compacted.kept_from, self.before));
            self.events.push(event);
        }
    }

    /// Whether nothing before the added events is needed.
    pub fn is_complete(&self) -> bool {
        match self.extent {
            HistoryExtent::All => false,
            HistoryExtent::Recent => {
                // The summary has the time of the message before it.
                let has_kept = |(kept_from, messages)| {
                    self.before <= kept_from && (self.before < messages || messages == 0)
                };
                self.has_request && self.has_answer && self.compaction.is_some_and(has_kept)
            }
        }
    }

    /// The collected part.
    pub fn finish(mut self) -> History {
        self.events.reverse();
        History { first: self.before, events: self.events }
    }
}

/// Whether an event is part of a [`History`].
fn is_part(event: &Event) -> bool {
    matches!(event.body, EventBody::MessageAppended(_) | EventBody::Compacted(_))
}

/// Reads a history page by page, from every task it goes through.
pub(super) async fn read_history<J: JournalLog + ?Sized>(
    journal: &J,
    until: HistoryRef,
    extent: HistoryExtent,
) -> Result<History, JournalError> {
    let mut chapters: Vec<Vec<Event>> = Vec::new();
    let mut next = Some(until);
    while let Some(HistoryRef { task_id, seq }) = next.take() {
        if chapters.len() == HISTORY_TASKS_MAX {
            return Err(too_many_tasks(task_id));
        }
        let mut events = events_of(journal, &task_id).await?;
        let first = events.first().ok_or_else(|| missing_task(&task_id))?;
        let EventBody::TaskCreated(created) = &first.body else {
            return Err(missing_task(&task_id));
        };
        next.clone_from(&created.history);
        events.retain(|event| event.seq <= seq && is_part(event));
        chapters.push(events);
    }
    let is_message = |event: &&Event| matches!(event.body, EventBody::MessageAppended(_));
    let messages = chapters.iter().flatten().filter(is_message).count() as u64;
    let mut collector = HistoryCollector::new(messages, extent);
    for event in chapters.into_iter().flat_map(|chapter| chapter.into_iter().rev()) {
        if collector.is_complete() {
            break;
        }
        collector.add(event);
    }
    Ok(collector.finish())
}

async fn events_of<J: JournalLog + ?Sized>(
    journal: &J,
    task_id: &TaskId,
) -> Result<Vec<Event>, JournalError> {
    let (mut events, mut after) = (Vec::new(), Position(0));
    loop {
        let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
        let page = journal.read(read).await?;
        if page.events.is_empty() {
            return Ok(events);
        }
        after = page.next;
        events.extend(page.events);
    }
}

/// The last status of a task, from all its events.
pub(super) async fn read_last_status<J: JournalLog + ?Sized>(
    journal: &J,
    task_id: &TaskId,
) -> Result<Option<StatusChanged>, JournalError> {
    let events = events_of(journal, task_id).await?;
    Ok(events.into_iter().rev().find_map(|event| {
        let EventBody::StatusChanged(change) = event.body else { return None };
        Some(change)
    }))
}

/// The error for a history that names a task which the journal does not have.
pub fn missing_task(task_id: &TaskId) -> JournalError {
    let reason = format!("a conversation continues task {task_id}, which is not there");
    JournalError::Corrupt { position: Position(0), reason }
}

/// The error for a history with more than [`HISTORY_TASKS_MAX`] tasks.
pub fn too_many_tasks(task_id: TaskId) -> JournalError {
    let reason = format!("its conversation goes through more than {HISTORY_TASKS_MAX} tasks");
    JournalError::Invalid { task_id, reason }
}
