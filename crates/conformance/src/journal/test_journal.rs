//! A journal under test, with operations for the checks.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{
    Append, Appended, ApprovalQuery, ApprovalSelector, Expected, History, HistoryExtent,
    IdempotencyKey, Journal, JournalError, Page, Read, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Approval, DayRange, Event, EventBody, HistoryRef, LiveAgent, Message, MessageAppended,
    Position, QueuedMessage, Replied, Seq, SessionId, SessionSummary, Spending, StatusChanged,
    TaskCreated, TaskId, TaskStatus, TaskSummary, UserMessage,
};
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::sample_events::interaction_id;
use crate::suite::{During, Finding, equal, quote};

/// More pages than any check needs: a journal with more does not end.
const PAGES_MAX: usize = 10_000;

/// A journal under test.
#[derive(Clone)]
pub(super) struct TestJournal {
    journal: Arc<dyn Journal>,
}

impl TestJournal {
    pub(super) fn new(journal: impl Journal + 'static) -> Self {
        Self { journal: Arc::new(journal) }
    }

    pub(super) async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.journal.append(append).await
    }

    /// An append that must succeed.
    pub(super) async fn write(&self, append: Append) -> Result<Appended, Finding> {
        self.append(append).await.during("append")
    }

    /// Creates a task, which is its first event.
    pub(super) async fn create(&self, task: &TaskId) -> Result<Appended, Finding> {
        self.write(draft(task, Expected::NoTask, vec![created()])).await
    }

    /// Creates a task and appends notes up to `seq`, one at a time.
    pub(super) async fn create_up_to(&self, task: &TaskId, seq: u64) -> Result<Appended, Finding> {
        let mut last = self.create(task).await?;
        for n in 1..seq {
            last = self.write(draft(task, at(n), vec![note(n)])).await?;
        }
        Ok(last)
    }

    /// An append that must be refused, and must not change the journal.
    pub(super) async fn refused(&self, append: Append) -> Result<JournalError, Finding> {
        let before = self.all().await?;
        let attempted = quote(&append);
        let error = match self.append(append).await {
            Err(error) => error,
            Ok(appended) => {
                return Err(Finding::Broken(format!("{attempted} was not refused: {appended:?}")));
            }
        };
        equal("the journal after a refused append", &self.all().await?, &before)?;
        Ok(error)
    }

    pub(super) async fn read(
        &self,
        task: Option<&TaskId>,
        after: Position,
        limit: usize,
    ) -> Result<Page, Finding> {
        let read = Read { task_id: task.cloned(), after, limit: at_most(limit) };
        self.journal.read(read).await.during("read")
    }

    pub(super) async fn tasks(
        &self,
        which: TaskSelector,
        limit: usize,
    ) -> Result<Vec<TaskSummary>, Finding> {
        let query = TaskQuery { which, limit: at_most(limit) };
        self.journal.tasks(query).await.during("tasks")
    }

    /// Only the ids of the tasks.
    pub(super) async fn listed(
        &self,
        which: TaskSelector,
        limit: usize,
    ) -> Result<Vec<TaskId>, Finding> {
        Ok(self.tasks(which, limit).await?.into_iter().map(|task| task.task_id).collect())
    }

    pub(super) async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Finding> {
        self.journal.sessions(at_most(limit).into()).await.during("sessions")
    }

    /// Every approval.
    pub(super) async fn approvals(&self, limit: usize) -> Result<Vec<Approval>, Finding> {
        self.approvals_which(ApprovalSelector::All, limit).await
    }

    pub(super) async fn approvals_which(
        &self,
        which: ApprovalSelector,
        limit: usize,
    ) -> Result<Vec<Approval>, Finding> {
        let query = ApprovalQuery { which, after: None, limit: at_most(limit) };
        self.journal.approvals(query).await.during("approvals")
    }

    pub(super) async fn agents(&self, limit: usize) -> Result<Vec<LiveAgent>, Finding> {
        self.journal.agents(at_most(limit).into()).await.during("agents")
    }

    pub(super) async fn queued(&self, limit: usize) -> Result<Vec<QueuedMessage>, Finding> {
        self.journal.queued(at_most(limit).into()).await.during("queued")
    }

    /// The journal itself, for queries with a cursor.
    pub(super) fn as_dyn(&self) -> &dyn Journal {
        &*self.journal
    }

    /// The answer to the `n`th request.
    pub(super) async fn reply(&self, n: u128) -> Result<Option<Replied>, Finding> {
        self.journal.reply(interaction_id(n)).await.during("reply")
    }

    pub(super) async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, Finding> {
        self.journal.history(until, extent).await.during("history")
    }

    /// The last status of the `n`th task.
    pub(super) async fn last_status(&self, n: u64) -> Result<Option<StatusChanged>, Finding> {
        self.journal.last_status(&task(n)).await.during("last_status")
    }

    pub(super) async fn answered(&self, key: &str) -> Result<Option<Appended>, Finding> {
        self.journal.answered(&IdempotencyKey(key.to_owned())).await.during("answered")
    }

    /// Spending from one day of February to another.
    pub(super) async fn spending(&self, from: u32, to: u32) -> Result<Spending, Finding> {
        let days = DayRange { from: february(from)?, to: february(to)? };
        self.journal.spending(days).await.during("spending")
    }

    /// All events. Relies on as little as possible: paging is another check.
    pub(super) async fn all(&self) -> Result<Vec<Event>, Finding> {
        let mut all: Vec<Event> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = all.last().map_or(Position(0), |event| event.position);
            let page = self.read(None, after, 1000).await?;
            let head = page.head;
            all.extend(page.events);
            if all.last().map_or(Position(0), |event| event.position) >= head {
                return Ok(all);
            }
        }
        Err(Finding::Broken(format!("reading did not arrive at the head within {PAGES_MAX} pages")))
    }

    /// The events of one task, filtered from all events.
    pub(super) async fn of(&self, task: &TaskId) -> Result<Vec<Event>, Finding> {
        let mut events = self.all().await?;
        events.retain(|event| event.task_id == *task);
        Ok(events)
    }
}

fn at_most(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)
}

/// The `n`th task of a check.
pub(super) fn task(n: u64) -> TaskId {
    TaskId::from(Uuid::from_u64_pair(0x0197_0000_0000_7000, n))
}

pub(super) fn at(seq: u64) -> Expected {
    Expected::At(Seq(seq))
}

pub(super) fn behind(seq: u64) -> Expected {
    Expected::AtOrArrivals(Seq(seq))
}

pub(super) fn draft(task: &TaskId, expected: Expected, events: Vec<EventBody>) -> Append {
    Append { task_id: task.clone(), expected, at: noon(), events, key: None }
}

pub(super) fn keyed(key: &str, append: Append) -> Append {
    Append { key: Some(IdempotencyKey(key.to_owned())), ..append }
}

pub(super) fn created() -> EventBody {
    EventBody::from(TaskCreated::new("scribe", SessionId::from(Uuid::from_u128(1))))
}

pub(super) fn note(n: u64) -> EventBody {
    said(UserMessage::text(format!("note {n}"), noon()))
}

pub(super) fn said(message: impl Into<Message>) -> EventBody {
    EventBody::from(MessageAppended::new(message.into()))
}

pub(super) fn status(status: TaskStatus) -> EventBody {
    EventBody::from(StatusChanged::new(status))
}

pub(super) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_771_416_000, 0).unwrap_or_default()
}

/// A day of February 2026.
pub(super) fn february(day: u32) -> Result<NaiveDate, Finding> {
    let found = NaiveDate::from_ymd_opt(2026, 2, day);
    found.ok_or_else(|| Finding::Broken(format!("there is no February {day}")))
}
