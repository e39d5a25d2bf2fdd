//! Our task, as its events tell it: how it began, how far what happens there is written down, and
//! what was said here since.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Appended, JournalError, Read, RunnerError, TaskJournal};
use antiphon_core::{
    Event, EventBody, HistoryRef, Message, Position, Relayed, Seq, TaskCreated, TaskId, WaitingFor,
};

use crate::orders::Order;

/// Tasks that one history goes through, at most.
pub const HISTORY_TASKS_MAX: usize = 10_000;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Our task.
pub(crate) struct Ours {
    pub(crate) task_id: TaskId,
    pub(crate) created: TaskCreated,
    /// Its last event.
    pub(crate) seq: Seq,
    position: Position,
    pub(crate) ended: bool,
    waiting_for: Option<WaitingFor>,
    /// How far it is written down.
    pub(crate) relayed: Option<Relayed>,
    /// What was said here and has not been passed on.
    pub(crate) orders: Vec<Order>,
    /// What was said in it before anything happened there.
    said: Vec<Arc<Message>>,
}

impl Ours {
    /// Reads our task.
    pub(crate) async fn read(
        journal: &dyn TaskJournal,
        task_id: &TaskId,
    ) -> Result<Self, RunnerError> {
        let none = || RunnerError::Refused { reason: format!("there is no task {task_id}") };
        let page = page(journal, task_id, Position(0)).await?;
        let first = page.first().ok_or_else(none)?;
        let EventBody::TaskCreated(created) = &first.body else { return Err(none()) };
        let mut ours = Self {
            task_id: task_id.clone(),
            created: created.clone(),
            seq: first.seq,
            position: first.position,
            ended: false,
            waiting_for: None,
            relayed: None,
            orders: Vec::new(),
            said: Vec::new(),
        };
        ours.catch_up(journal).await?;
        Ok(ours)
    }

    /// Reads what others wrote since.
    pub(crate) async fn catch_up(&mut self, journal: &dyn TaskJournal) -> Result<(), JournalError> {
        loop {
            let events = page(journal, &self.task_id, self.position).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                (self.seq, self.position) = (event.seq, event.position);
                if let EventBody::StatusChanged(change) = &event.body {
                    self.orders.extend(Order::of(change, self.waiting_for));
                }
                self.apply(&event.body);
            }
        }
    }

    /// Notes what we wrote ourselves: there is nothing in it to pass on.
    pub(crate) fn wrote(&mut self, events: &[EventBody], appended: &Appended) {
        (self.seq, self.position) = (appended.seq, appended.position);
        for body in events {
            self.apply(body);
        }
    }

    fn apply(&mut self, body: &EventBody) {
        self.ended |= body.ends_task();
        if let EventBody::Relayed(relayed) = body {
            self.relayed = Some(relayed.clone());
            // What was said before it had been passed on before it was written.
            self.orders.clear();
        } else if let EventBody::StatusChanged(change) = body {
            self.waiting_for = change.waiting_for;
        } else if let EventBody::MessageAppended(appended) = body
            && self.relayed.is_none()
        {
            self.said.push(Arc::clone(&appended.message));
        }
    }

    /// Everything that was said before anything happened there, in other tasks and in this one.
    pub(crate) async fn said(
        &self,
        journal: &dyn TaskJournal,
    ) -> Result<Vec<Arc<Message>>, RunnerError> {
        let mut chapters = vec![self.said.clone()];
        let mut before = self.created.history.clone();
        while let Some(HistoryRef { task_id, seq }) = before.take() {
            if chapters.len() == HISTORY_TASKS_MAX {
                let reason =
                    format!("its history goes through more than {HISTORY_TASKS_MAX} tasks");
                return Err(RunnerError::Refused { reason });
            }
            let (messages, next) = chapter(journal, &task_id, seq).await?;
            chapters.push(messages);
            before = next;
        }
        Ok(chapters.into_iter().rev().flatten().collect())
    }
}

/// What was said in another task up to one of its events, and what was said before that.
async fn chapter(
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
