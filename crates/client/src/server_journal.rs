//! The journal of a server as a [`TaskJournal`](antiphon_core::port::TaskJournal): whatever reads a journal
//! on this machine reads that of a server in the same way. It writes nothing.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use antiphon_api::{JournalPage, JournalPageQuery, LISTED_MAX, TaskQuery as TaskList};
use antiphon_core::port::{
    Append, Appended, IdempotencyKey, JournalError, JournalLog, Page, Read, TaskFilter, TaskIndex,
    TaskQuery, TaskSelector,
};
use antiphon_core::{TaskId, TaskStatus, TaskSummary};
use async_trait::async_trait;

use crate::client::Client;
use crate::error::ClientError;
use crate::retry_policy::RetryPolicy;

/// Tasks and events in one request, at most.
const PAGE: NonZeroUsize = NonZeroUsize::new(LISTED_MAX).unwrap();

/// The journal of a server, to read.
#[derive(Debug)]
pub struct ServerJournal {
    client: Client,
    /// Whether the server has sent a page. From then on a page that fails is asked for again.
    has_answered: AtomicBool,
    retry: RetryPolicy,
    last_error: Mutex<Option<ClientError>>,
}

impl ServerJournal {
    /// The journal of the server of `client`. A server that has sent events and does not answer any more is
    /// asked again as `retry` says: it may be starting again. One that never answered fails at once.
    pub fn new(client: Client, retry: RetryPolicy) -> Self {
        let has_answered = AtomicBool::new(false);
        Self { client, has_answered, retry, last_error: Mutex::new(None) }
    }

    /// The last failed request. A [`JournalError`] says less.
    pub fn last_error(&self) -> Option<ClientError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed(&self, error: ClientError) -> JournalError {
        let reason = error.to_string();
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        JournalError::Unavailable { reason }
    }

    /// A page of events.
    async fn page(&self, query: &JournalPageQuery) -> Result<JournalPage, ClientError> {
        let mut waits = self.retry.waits();
        loop {
            let error = match self.client.journal_page(query).await {
                Ok(page) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(page);
                }
                Err(error) => error,
            };
            let retries = error.is_transient() && self.has_answered.load(Ordering::Relaxed);
            match waits.next().filter(|_| retries) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    /// Tasks of a list, page by page, until there are `limit`.
    async fn listed(
        &self,
        mut list: TaskList,
        limit: NonZeroUsize,
    ) -> Result<Vec<TaskSummary>, ClientError> {
        let mut tasks: Vec<TaskSummary> = Vec::new();
        loop {
            list.limit = NonZeroUsize::new((limit.get() - tasks.len()).min(PAGE.get()));
            let page = self.client.tasks(&list).await?;
            let is_empty = page.tasks.is_empty();
            tasks.extend(page.tasks);
            tasks.truncate(limit.get());
            match page.next_cursor {
                // A server that repeats its cursor would never end.
                Some(cursor)
                    if tasks.len() < limit.get()
                        && !is_empty
                        && list.cursor.as_ref() != Some(&cursor) =>
                {
                    list.cursor = Some(cursor);
                }
                Some(_) | None => return Ok(tasks),
            }
        }
    }

    async fn one(&self, task_id: &TaskId) -> Result<Vec<TaskSummary>, ClientError> {
        match self.client.task(task_id).await {
            Ok(task) => Ok(vec![task.summary]),
            Err(ClientError::Refused { status: 404, .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn with_prefix(
        &self,
        prefix: String,
        limit: NonZeroUsize,
    ) -> Result<Vec<TaskSummary>, ClientError> {
        let id_prefix = Some(prefix.clone());
        let list = TaskList { limit: Some(limit.min(PAGE)), id_prefix, ..TaskList::default() };
        let mut tasks = self.client.tasks(&list).await?.tasks;
        // An older server ignores the prefix, and another task must not be taken for this one.
        tasks.retain(|task| task.task_id.is_named_by(&prefix));
        Ok(tasks)
    }
}

#[async_trait]
impl JournalLog for ServerJournal {
    async fn append(&self, _: Append) -> Result<Appended, JournalError> {
        Err(read_only())
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let Read { task_id, after, limit } = read;
        let query = JournalPageQuery { task_id, after: Some(after), limit: Some(limit.min(PAGE)) };
        let page = self.page(&query).await;
        let JournalPage { events, next, head } = page.map_err(|error| self.failed(error))?;
        let is_new = |event: &antiphon_core::Event| {
            event.position > after && query.task_id.as_ref().is_none_or(|id| *id == event.task_id)
        };
        let is_ordered = events.is_sorted_by(|one, other| one.position < other.position);
        let advances = events.last().is_none_or(|last| next >= last.position);
        if !is_ordered || !events.iter().all(is_new) || !advances {
            let reason = "a page of the journal is out of order";
            return Err(self.failed(ClientError::protocol(reason)));
        }
        Ok(Page { events, next, head })
    }

    async fn answered(&self, _: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        Err(read_only())
    }
}

#[async_trait]
impl TaskIndex for ServerJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        let TaskQuery { which, limit } = query;
        let all = TaskList { all: true, ..TaskList::default() };
        let found = match which {
            TaskSelector::All => self.listed(all, limit).await,
            TaskSelector::Roots => self.listed(TaskList { tops: true, ..all }, limit).await,
            TaskSelector::Unfinished => {
                self.listed(TaskList { unfinished: true, ..all }, limit).await
            }
            TaskSelector::Session(session_id) => {
                self.listed(TaskList { session_id: Some(session_id), ..all }, limit).await
            }
            TaskSelector::Matching(filter) => self.listed(list(filter), limit).await,
            TaskSelector::One(task_id) => self.one(&task_id).await,
            TaskSelector::IdPrefix(prefix) => self.with_prefix(prefix, limit).await,
            TaskSelector::Tree(root) => self.client.task_tree(&root).await.map(|tree| {
                // The API lists parents first.
                tree.tasks.into_iter().rev().take(limit.get()).collect()
            }),
        };
        found.map_err(|error| self.failed(error))
    }
}

fn list(filter: TaskFilter) -> TaskList {
    let statuses: Vec<&str> = filter.statuses.iter().copied().map(TaskStatus::as_str).collect();
    TaskList {
        limit: None,
        status: (!statuses.is_empty()).then(|| statuses.join(",")),
        unfinished: false,
        agent: filter.agent,
        session_id: filter.session,
        tops: filter.roots,
        all: !filter.without_records,
        cursor: filter.before,
        id_prefix: None,
    }
}

fn read_only() -> JournalError {
    JournalError::Unavailable { reason: "the journal of a server is read only".to_owned() }
}
