//! Reads a tree of tasks from a journal, also while another process writes it, here or at a server. It takes no lock and
//! delays no writer. A journal on this machine is polled for changes; a server streams them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_api::JournalEventQuery;
use antiphon_client::{ClientError, EventStream, RetryPolicy};
use antiphon_core::port::{JournalError, Read, TaskJournal, TaskSelector};
use antiphon_core::{Event, EventBody, Position, TaskId, TaskSummary};
use antiphon_project::error::ProjectError;
use antiphon_project::peer_tasks_below;
use antiphon_project::task_lookup::find_task_in;
use antiphon_view::{TASKS_MAX, TaskDetail, TaskTree};

use crate::connection::ProjectServer;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// A task with more events gets no detail.
const DETAIL_EVENTS_MAX: u64 = 20_000;

/// Events that are read between two answers of [`TreeReader::changes`], at most.
const UPDATE_EVENTS_MAX: usize = 20_000;

/// How often a journal on this machine is polled.
const POLL: Duration = Duration::from_millis(250);

/// How often the owner is asked what the journal cannot hold.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// A read-only journal, and the position up to which it has been read.
pub struct TreeReader {
    journal: Arc<dyn TaskJournal>,
    after: Position,
    /// The process that runs the tasks, if there is one.
    owner: Option<ProjectServer>,
    /// When it was last asked.
    asked: Option<Instant>,
    /// The server that `--server` names, if there is one.
    server: Option<ProjectServer>,
    /// The events of the tree at that server.
    stream: Option<EventStream>,
    /// The task without a parent that the tree belongs to.
    root: Option<TaskId>,
}

impl TreeReader {
    pub(crate) fn new(
        journal: Arc<dyn TaskJournal>,
        owner: Option<ProjectServer>,
        server: Option<ProjectServer>,
    ) -> Self {
        Self { journal, after: Position(0), owner, asked: None, server, stream: None, root: None }
    }

    /// The task of this name and its descendants.
    pub async fn tree(&mut self, name: &str) -> Result<TaskTree, ProjectError> {
        // The head first: `changes` reads what is appended meanwhile, and applies nothing twice.
        let read = Read { task_id: None, after: Position(u64::MAX), limit: NonZeroUsize::MIN };
        self.after = self.journal.read(read).await.map_err(unavailable)?.head;
        let list = async |query| self.journal.tasks(query).await.map_err(unavailable);
        let task = find_task_in(list, name, TaskSelector::All).await?;
        let top = if name == "last" { &task.root } else { &task.task_id };
        let all = self.journal.tasks(TaskTree::query(&task.root)).await.map_err(unavailable)?;
        if all.len() > TASKS_MAX {
            return Err(too_many(top));
        }
        let all = self.with_peer_tasks(all).await?;
        self.root = Some(task.root.clone());
        self.open_stream();
        let mut tree = TaskTree::new(top, all)
            .ok_or_else(|| ProjectError::Failed(format!("task {top} is not in the journal")))?;
        self.ask_owner(&mut tree).await;
        Ok(tree)
    }

    /// Streams the events behind the last one, if a server has the journal.
    fn open_stream(&mut self) {
        self.stream = self.server.as_ref().map(|server| {
            let (root, after) = (self.root.clone(), Some(self.after));
            let query = JournalEventQuery { root, after, ..JournalEventQuery::default() };
            server.client.journal_events(query, RetryPolicy::default())
        });
    }

    /// Asks the owner, now and then, which tasks wait until the journal can be written. Returns the indexes of those
    /// that began or ended to wait.
    async fn ask_owner(&mut self, tree: &mut TaskTree) -> Vec<usize> {
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= ASK_AFTER);
        let Some(owner) = self.owner.as_ref().filter(|_| is_due) else { return Vec::new() };
        let waits = owner.storage_waits().await;
        self.asked = Some(Instant::now());
        tree.set_storage_waits(&waits)
    }

    /// The same tasks, the newest first, with those that peers dispatched for them.
    async fn with_peer_tasks(
        &self,
        all: Vec<TaskSummary>,
    ) -> Result<Vec<TaskSummary>, ProjectError> {
        let journal = &self.journal;
        let read = |query| async move { journal.read(query).await.map_err(unavailable) };
        let mut added = peer_tasks_below(read, &all).await?;
        added.reverse();
        added.extend(all);
        Ok(added)
    }

    /// Reads the details of these tasks from their events, unless they have been read.
    pub async fn read_details(
        &self,
        tree: &mut TaskTree,
        indexes: impl IntoIterator<Item = usize>,
    ) -> Result<(), ProjectError> {
        for index in indexes {
            let task = &tree.tasks()[index];
            if task.detail.is_some() || task.summary.seq.0 > DETAIL_EVENTS_MAX {
                continue;
            }
            let (task_id, seq) = (task.summary.task_id.clone(), task.summary.seq);
            if let Some(detail) = self.detail(task_id, seq.0).await? {
                tree.set_detail(index, detail);
            }
        }
        Ok(())
    }

    /// Waits a little, or until the server sends events, and applies them to the tree. Returns the indexes of the
    /// changed tasks in order, each once; there may be none.
    pub async fn changes(&mut self, tree: &mut TaskTree) -> Result<Vec<usize>, ProjectError> {
        let events = match &mut self.stream {
            Some(stream) => tokio::select! {
                events = stream.next_batch() => self.batch(events).await?,
                () = tokio::time::sleep(ASK_AFTER) => Vec::new(),
            },
            None => {
                tokio::time::sleep(POLL).await;
                self.read_new().await?
            }
        };
        let mut changed: Vec<usize> = events.iter().filter_map(|event| tree.apply(event)).collect();
        changed.extend(self.ask_owner(tree).await);
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// Events of the server. While it is away there are none, however long that takes.
    async fn batch(
        &mut self,
        events: Result<Vec<Event>, ClientError>,
    ) -> Result<Vec<Event>, ProjectError> {
        match (events, &self.server) {
            (Ok(events), _) => {
                self.after = events.last().map_or(self.after, |last| last.position);
                Ok(events)
            }
            (Err(error), _) if error.is_transient() => {
                tracing::debug!(%error, "waits for the server");
                tokio::time::sleep(ASK_AFTER).await;
                self.open_stream();
                Ok(Vec::new())
            }
            (Err(error), Some(server)) => Err(server.project_error(error)),
            (Err(error), None) => Err(ProjectError::Unavailable(error.to_string())),
        }
    }

    /// Reads the events since the last call, at most [`UPDATE_EVENTS_MAX`].
    async fn read_new(&mut self) -> Result<Vec<Event>, ProjectError> {
        let mut events = Vec::new();
        while events.len() < UPDATE_EVENTS_MAX {
            let read = Read { task_id: None, after: self.after, limit: PAGE };
            let page = self.journal.read(read).await.map_err(unavailable)?;
            if page.events.is_empty() {
                break;
            }
            self.after = page.next;
            events.extend(page.events);
        }
        Ok(events)
    }

    async fn detail(
        &self,
        task_id: TaskId,
        until: u64,
    ) -> Result<Option<TaskDetail>, ProjectError> {
        let mut detail: Option<TaskDetail> = None;
        let mut after = Position(0);
        while detail.as_ref().is_none_or(|detail| detail.seq.0 < until) {
            let read = Read { task_id: Some(task_id.clone()), after, limit: PAGE };
            let page = self.journal.read(read).await.map_err(unavailable)?;
            if page.events.is_empty() {
                break;
            }
            after = page.next;
            for event in page.events.iter().filter(|event| event.seq.0 <= until) {
                match (&mut detail, &event.body) {
                    (None, EventBody::TaskCreated(created)) => {
                        detail = Some(TaskDetail::created(created));
                    }
                    (None, _) => return Ok(None),
                    (Some(detail), _) => detail.apply(event),
                }
            }
        }
        Ok(detail)
    }
}

fn unavailable(error: JournalError) -> ProjectError {
    ProjectError::Unavailable(error.to_string())
}

fn too_many(top: &TaskId) -> ProjectError {
    ProjectError::Refused(format!("the tree of task {top} has more than {TASKS_MAX} tasks"))
}
