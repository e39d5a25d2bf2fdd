//! The local task, read from its events: how it began, up to which remote event it is relayed, and which
//! commands arrived since.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Appended, JournalError, Read, RunnerError, TaskJournal};
use antiphon_core::{
    Event, EventBody, HistoryRef, Message, Position, Relayed, Seq, TaskCreated, TaskId, WaitingFor,
};

use crate::control::ControlCommand;

/// Tasks of one history, at most. A longer history is refused.
pub const HISTORY_TASKS_MAX: usize = 10_000;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The local task.
pub(crate) struct LocalTask {
    pub(crate) task_id: TaskId,
    pub(crate) created: TaskCreated,
    /// Number of its last event.
    pub(crate) seq: Seq,
    position: Position,
    pub(crate) ended: bool,
    waiting_for: Option<WaitingFor>,
    /// The last remote event that is relayed.
    pub(crate) relayed: Option<Relayed>,
    /// Commands that are not forwarded yet.
    pub(crate) commands: Vec<ControlCommand>,
    /// Messages from before the first relayed event.
    messages: Vec<Arc<Message>>,
}

impl LocalTask {
    /// Reads the task.
    pub(crate) async fn read(
        journal: &dyn TaskJournal,
        task_id: &TaskId,
    ) -> Result<Self, RunnerError> {
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
            waiting_for: None,
            relayed: None,
            commands: Vec::new(),
            messages: Vec::new(),
        };
        task.catch_up(journal).await?;
        Ok(task)
    }

    /// Reads the events that other writers appended since.
    pub(crate) async fn catch_up(&mut self, journal: &dyn TaskJournal) -> Result<(), JournalError> {
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
    pub(crate) fn appended(&mut self, events: &[EventBody], appended: &Appended) {
        (self.seq, self.position) = (appended.seq, appended.position);
        for body in events {
            self.apply(body);
        }
    }

    fn apply(&mut self, body: &EventBody) {
        self.ended |= body.ends_task();
        match body {
            EventBody::Relayed(relayed) => {
                self.relayed = Some(relayed.clone());
                // Commands before it were forwarded before it was appended.
                self.commands.clear();
            }
            EventBody::StatusChanged(change) => self.waiting_for = change.waiting_for,
            EventBody::MessageAppended(appended) if self.relayed.is_none() => {
                self.messages.push(Arc::clone(&appended.message));
            }
            EventBody::TaskCreated(_)
            | EventBody::StateChanged(_)
            | EventBody::MessageAppended(_)
            | EventBody::MessageQueued(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ApprovalDecided(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolStarted(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::HandedOver(_)
            | EventBody::TaskRestored(_)
            | EventBody::UsageRecorded(_)
            | EventBody::BudgetRaised(_)
            | EventBody::OutputRejected(_)
            | EventBody::Compacted(_) => {}
        }
    }

    /// All messages from before the first relayed event, of the tasks before this one and of this one.
    pub(crate) async fn history(
        &self,
        journal: &dyn TaskJournal,
    ) -> Result<Vec<Arc<Message>>, RunnerError> {
        let mut parts = vec![self.messages.clone()];
        let mut before = self.created.history.clone();
        while let Some(HistoryRef { task_id, seq }) = before.take() {
            if parts.len() == HISTORY_TASKS_MAX {
                let reason = format!("its history has more than {HISTORY_TASKS_MAX} tasks");
                return Err(RunnerError::Refused { reason });
            }
            let (messages, next) = messages_until(journal, &task_id, seq).await?;
            parts.push(messages);
            before = next;
        }
        Ok(parts.into_iter().rev().flatten().collect())
    }
}

/// Messages of another task up to one of its events, and the history before that task.
async fn messages_until(
    journal: &dyn TaskJournal,
    task_id: &TaskId,
    until: Seq,
) -> Result<(Vec<Arc<Message>>, Option<HistoryRef>), JournalError> {
    let (mut messages, mut before, mut after) = (Vec::new(), None, Position(0));
    loop {
        let events = page(journal, task_id, after).await?;
        let Some(last) = events.last() else { return Ok((messages, before)) };
        after = last.position;
        for event in events.into_iter().filter(|event| event.seq <= until) {
            if let EventBody::MessageAppended(appended) = event.body {
                messages.push(appended.message);
            } else if let EventBody::TaskCreated(created) = event.body {
                before = created.history;
            }
        }
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
