//! The journal, served by the runner. The runner refuses what a worker may not do; queries outside
//! of the protocol are refused here.

use std::sync::Arc;

use antiphon_core::port::{
    Append, Appended, Expected, History, HistoryExtent, IdempotencyKey, JournalError, JournalLog,
    Page, Read, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{Event, HistoryRef, TaskId, TaskSummary};
use async_trait::async_trait;

use super::link::{Link, LinkError};
use crate::wire::{
    AppendWire, EventWire, FrameError, FromWorker, HistoryPageWire, HistoryWire, ReadWire,
    TaskScope, ToWorker,
};

/// The journal of one task, served by the runner.
pub(super) struct RemoteJournal {
    task_id: TaskId,
    link: Arc<Link>,
}

impl RemoteJournal {
    pub(super) fn new(task_id: TaskId, link: Arc<Link>) -> Self {
        Self { task_id, link }
    }

    fn invalid(&self, reason: impl ToString) -> JournalError {
        JournalError::Invalid { task_id: self.task_id.clone(), reason: reason.to_string() }
    }

    fn failed(&self, error: LinkError) -> JournalError {
        match error {
            LinkError::Frame(
                error @ (FrameError::TooLong { .. } | FrameError::Malformed { .. }),
            ) => self.invalid(error),
            LinkError::Gone | LinkError::Frame(FrameError::Broken(_)) => unavailable(error),
        }
    }

    fn wire(&self, append: &Append) -> Result<AppendWire, JournalError> {
        append.check_shape()?;
        if append.task_id != self.task_id {
            return Err(self.invalid("a worker writes to its own task"));
        }
        let (behind, or_arrivals) = match append.expected {
            Expected::At(behind) => (behind, false),
            Expected::AtOrArrivals(behind) => (behind, true),
            Expected::NoTask | Expected::Exists => {
                return Err(self.invalid("a worker writes behind what it has read"));
            }
        };
        if append.key.is_some() {
            return Err(self.invalid("a worker has no keys"));
        }
        let events = append.events.iter().map(EventWire::of).collect::<Result<_, _>>();
        Ok(AppendWire {
            task_id: append.task_id.clone(),
            behind,
            or_arrivals,
            at: append.at,
            events: events.map_err(|error| self.invalid(error))?,
        })
    }

    async fn list(&self, whose: TaskScope) -> Result<Vec<TaskSummary>, JournalError> {
        let reply = self.link.ask(|id| FromWorker::Tasks { id, whose }).await;
        let ToWorker::Tasks { answer, .. } = reply.map_err(|error| self.failed(error))? else {
            return Err(astray());
        };
        answer
    }
}

#[async_trait]
impl JournalLog for RemoteJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let wire = self.wire(&append)?;
        let reply = self.link.ask(|id| FromWorker::Append { id, append: wire }).await;
        let ToWorker::Appended { answer, .. } = reply.map_err(|error| self.failed(error))? else {
            return Err(astray());
        };
        answer.map(|appended| appended.to(append.task_id))
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let task_id = read.task_id.unwrap_or_else(|| self.task_id.clone());
        let wire = ReadWire { task_id, after: read.after, limit: read.limit };
        let reply = self.link.ask(|id| FromWorker::Read { id, read: wire }).await;
        let ToWorker::Page { answer, .. } = reply.map_err(|error| self.failed(error))? else {
            return Err(astray());
        };
        answer.map(Page::from)
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        let mut read: Vec<Event> = Vec::new();
        loop {
            let (until, extent) = (until.clone(), extent.into());
            let ask = HistoryWire { until, extent, skip: read.len() };
            let reply = self.link.ask(|id| FromWorker::History { id, ask }).await;
            let ToWorker::History { answer, .. } = reply.map_err(|error| self.failed(error))?
            else {
                return Err(astray());
            };
            let HistoryPageWire { first, events, total } = answer?;
            let is_last = events.is_empty() || read.len() + events.len() >= total;
            read.extend(events);
            if is_last {
                return Ok(History { first, events: read });
            }
        }
    }

    /// `None`: this journal refuses keys, so no append has one.
    async fn answered(&self, _: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        Ok(None)
    }
}

#[async_trait]
impl TaskIndex for RemoteJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        let whose = match &query.which {
            TaskSelector::Tree(_) => TaskScope::Tree,
            TaskSelector::All
            | TaskSelector::Roots
            | TaskSelector::Unfinished
            | TaskSelector::One(_)
            | TaskSelector::IdPrefix(_)
            | TaskSelector::Session(_)
            | TaskSelector::Matching(_) => TaskScope::Own,
        };
        let mut tasks = self.list(whose).await?;
        tasks.retain(|task| match &query.which {
            TaskSelector::All => true,
            TaskSelector::Roots => task.parent.is_none(),
            TaskSelector::Unfinished => !task.status.is_terminal(),
            TaskSelector::One(task_id) => task.task_id == *task_id,
            TaskSelector::IdPrefix(start) => task.task_id.is_named_by(start),
            TaskSelector::Tree(root) => task.root == *root,
            TaskSelector::Session(session_id) => task.session_id == *session_id,
            // There is one, and none before it.
            TaskSelector::Matching(filter) => filter.before.is_none() && filter.matches(task),
        });
        tasks.truncate(query.limit.get());
        Ok(tasks)
    }
}

fn unavailable(reason: impl ToString) -> JournalError {
    JournalError::Unavailable { reason: reason.to_string() }
}

fn astray() -> JournalError {
    unavailable("the runner answered something else than it was asked")
}
