//! Reads a tree of tasks from a journal, also while another process writes it, here or at a server. It takes no lock and
//! delays no writer. It is not notified of new events: the caller polls.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{JournalError, Read, TaskJournal, TaskSelector};
use antiphon_core::{EventBody, PeerTasks, Position, TaskId, TaskSummary};
use antiphon_process::ProjectServer;
use antiphon_view::{TASKS_MAX, TaskDetail, TaskTree};

use crate::failure::Failure;
use antiphon_project::task_lookup::find_task_in;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// A task with more events gets no detail.
const DETAIL_EVENTS_MAX: u64 = 20_000;

/// Events that one call of `update` reads at most.
const UPDATE_EVENTS_MAX: usize = 20_000;

/// How often the owner is asked what the journal cannot hold.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// A read-only journal, and the position up to which it has been read.
pub(super) struct TreeReader {
    journal: Arc<dyn TaskJournal>,
    after: Position,
    /// The process that runs the tasks, if there is one.
    owner: Option<ProjectServer>,
    /// When it was last asked.
    asked: Option<Instant>,
}

impl TreeReader {
    pub(super) fn new(journal: Arc<dyn TaskJournal>, owner: Option<ProjectServer>) -> Self {
        Self { journal, after: Position(0), owner, asked: None }
    }

    /// The task of this name and its descendants.
    pub(super) async fn tree(&mut self, name: &str) -> Result<TaskTree, Failure> {
        // The head first: `update` reads what is appended meanwhile, and applies nothing twice.
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
        let mut tree = TaskTree::new(top, all)
            .ok_or_else(|| Failure::failed(format!("task {top} is not in the journal")))?;
        self.ask_owner(&mut tree).await;
        Ok(tree)
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
    async fn with_peer_tasks(&self, all: Vec<TaskSummary>) -> Result<Vec<TaskSummary>, Failure> {
        let known: HashSet<&TaskId> = all.iter().map(|task| &task.task_id).collect();
        let mut added = Vec::new();
        for task in all.iter().filter(|task| task.runs_on.peer.is_some()) {
            let mut peer_tasks = PeerTasks::default();
            let mut after = Position(0);
            loop {
                let read = Read { task_id: Some(task.task_id.clone()), after, limit: PAGE };
                let page = self.journal.read(read).await.map_err(unavailable)?;
                if page.events.is_empty() {
                    break;
                }
                after = page.next;
                for event in &page.events {
                    if let EventBody::Relayed(relayed) = &event.body {
                        peer_tasks.apply(relayed);
                    }
                }
            }
            // The list of a server has them already.
            let new = |below: &TaskSummary| !known.contains(&below.task_id);
            added.extend(peer_tasks.below(task).into_iter().filter(new));
        }
        added.reverse();
        added.extend(all);
        Ok(added)
    }

    /// Reads the details of these tasks from their events, unless they have been read.
    pub(super) async fn read_details(
        &self,
        tree: &mut TaskTree,
        indexes: impl IntoIterator<Item = usize>,
    ) -> Result<(), Failure> {
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

    /// Applies the events since the last call, at most [`UPDATE_EVENTS_MAX`]. Returns the indexes of the
    /// changed tasks in order, each once.
    pub(super) async fn update(&mut self, tree: &mut TaskTree) -> Result<Vec<usize>, Failure> {
        let mut changed = Vec::new();
        let mut count = 0;
        while count < UPDATE_EVENTS_MAX {
            let read = Read { task_id: None, after: self.after, limit: PAGE };
            let page = self.journal.read(read).await.map_err(unavailable)?;
            if page.events.is_empty() {
                break;
            }
            count += page.events.len();
            self.after = page.next;
            changed.extend(page.events.iter().filter_map(|event| tree.apply(event)));
        }
        changed.extend(self.ask_owner(tree).await);
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    async fn detail(&self, task_id: TaskId, until: u64) -> Result<Option<TaskDetail>, Failure> {
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

fn unavailable(error: JournalError) -> Failure {
    Failure::unavailable(error.to_string())
}

fn too_many(top: &TaskId) -> Failure {
    Failure::refused(format!("the tree of task {top} has more than {TASKS_MAX} tasks"))
}
