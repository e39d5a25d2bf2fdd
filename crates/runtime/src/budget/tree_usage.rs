//! Usage of a task and its descendants, shared by the running ones.
//!
//! Every task is the root of a tree. Usage is counted in the tree of each ancestor, so that a limit of
//! any ancestor holds for everything it dispatched.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use antiphon_core::port::{Journal, Read, TaskQuery, TaskSelector};
use antiphon_core::{EventBody, Position, TaskCreated, TaskId, TaskLimits, TaskSummary};
use chrono::{DateTime, Utc};

use crate::byte_lru::ByteLru;
use crate::orchestrator_error::OrchestratorError;
use crate::task::limits::{LimitReached, LimitScope, Totals};
use crate::task::state::{ReplayError, TaskState};

/// Maximum number of tasks of a tree that are read.
pub(crate) const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// Number of registered trees at which unused ones are dropped.
const TREES_CLEANUP_AT: usize = 2 * crate::task::schedule::run_slots::TASKS_RUNNING_MAX;

/// Maximum memory of trees of tasks at rest, in bytes. Those that rest for the longest time are dropped, and read again.
const TREES_AT_REST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Memory of a tree, and of the usage of one model in it, roughly.
const TREE_BYTES: usize = 512;

/// A task with its descendants: limits and totals.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: TaskId,
    parent: Option<TaskId>,
    pub(crate) depth: u32,
    pub(crate) limits: TaskLimits,
    /// Id of the API key that pays.
    pub(crate) payer: Option<String>,
    totals: Mutex<Totals>,
}

impl Tree {
    fn new(root: TaskId, created: &TaskCreated, totals: Totals) -> Self {
        let mut limits = created.limits;
        if created.resident {
            // These limits hold for the resident agent itself, for each wake-up.
            (limits.turns_max, limits.tool_calls_max) = (None, None);
        }
        Self {
            root,
            parent: created.parent.clone(),
            depth: created.depth,
            limits,
            payer: created.payer.clone(),
            totals: Mutex::new(totals),
        }
    }

    /// The tree of a task that is about to be created.
    pub(crate) fn for_new_task(root: TaskId, created: &TaskCreated) -> Arc<Self> {
        Arc::new(Self::new(root, created, Totals { tasks: 1, ..Totals::default() }))
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits and totals.
    pub(crate) fn scope(&self) -> LimitScope {
        LimitScope { limits: self.limits, totals: self.totals().clone() }
    }

    /// Adds recorded events of one of its tasks.
    pub(crate) fn add(&self, events: &[EventBody]) {
        let mut totals = self.totals();
        for body in events {
            if matches!(body, EventBody::ToolStarted(_) | EventBody::ToolRequested(_)) {
                totals.calls = totals.calls.saturating_add(1);
            } else if let EventBody::UsageRecorded(recorded) = body {
                totals.pay(recorded);
            }
        }
    }

    /// Reserves `more` tasks, if the limit allows them.
    fn reserve(&self, more: u32) -> Result<(), LimitReached> {
        let mut totals = self.totals();
        let tasks = totals.tasks.saturating_add(more);
        let max = self.limits.tasks_max.map(std::num::NonZeroU32::get);
        match max.or((self.parent.is_none()).then_some(crate::task::limits::TASKS_DEFAULT)) {
            Some(max) if tasks > max => Err(LimitReached::Tasks { max }),
            Some(_) | None => {
                totals.tasks = tasks;
                Ok(())
            }
        }
    }

    fn release(&self, fewer: u32) {
        let mut totals = self.totals();
        totals.tasks = totals.tasks.saturating_sub(fewer);
    }
}

/// Reserves `more` tasks in all of these trees, or in none.
pub(crate) fn reserve(trees: &[Arc<Tree>], more: u32) -> Result<(), LimitReached> {
    for (index, tree) in trees.iter().enumerate() {
        if let Err(limit) = tree.reserve(more) {
            for reserved in &trees[..index] {
                reserved.release(more);
            }
            return Err(limit);
        }
    }
    Ok(())
}

/// The trees of running tasks, and of tasks at rest that have dispatched others.
#[derive(Debug)]
pub(crate) struct Trees(Mutex<TreeTable>);

#[derive(Debug)]
struct TreeTable {
    registered: HashMap<TaskId, Weak<Tree>>,
    /// Trees of tasks at rest: their totals stay, so that the next run does not read every task below them.
    at_rest: ByteLru<TaskId, Arc<Tree>>,
}

impl Default for Trees {
    fn default() -> Self {
        let at_rest = ByteLru::new(TREES_AT_REST_BYTES_MAX);
        Self(Mutex::new(TreeTable { registered: HashMap::new(), at_rest }))
    }
}

impl Trees {
    fn table(&self) -> MutexGuard<'_, TreeTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the tree of a task that came to rest, if others are below it. What they use is counted in it meanwhile.
    pub(crate) fn keep_at_rest(&self, trees: &[Arc<Tree>]) {
        let Some(own) = trees.first().filter(|own| own.totals().tasks > 1) else { return };
        let bytes = TREE_BYTES + own.totals().spent.len() * TREE_BYTES;
        self.table().at_rest.insert(own.root.clone(), Arc::clone(own), bytes);
    }

    /// Drops the tree of a task that has ended.
    pub(crate) fn forget(&self, root: &TaskId) {
        self.table().at_rest.remove(root);
    }

    /// The trees that a task belongs to, its own first: registered ones, or rebuilt from the journal.
    pub(crate) async fn of(
        &self,
        state: &TaskState,
        journal: &dyn Journal,
    ) -> Result<Vec<Arc<Tree>>, OrchestratorError> {
        let mut path = Vec::new();
        let mut missing = false;
        let mut next = Some(state.task_id.clone());
        while let Some(root) = next {
            let source = match self.find(&root) {
                Some(tree) => TreeSource::Registered(tree),
                // Nothing below it has used anything.
                None if root == state.task_id && !state.has_children => {
                    let tree = Tree::new(root, &state.created, Totals::of_task(state));
                    TreeSource::Registered(self.register(Arc::new(tree)))
                }
                None if root == state.task_id => {
                    TreeSource::Recorded(root, Box::new(state.created.clone()))
                }
                None => {
                    TreeSource::Recorded(root.clone(), Box::new(creation(&root, journal).await?.0))
                }
            };
            next = source.parent().cloned();
            missing |= matches!(source, TreeSource::Recorded(..));
            path.push(source);
        }
        let root = state.created.root.as_ref().unwrap_or(&state.task_id);
        let tasks = if missing {
            let query =
                TaskQuery { which: TaskSelector::Tree(root.clone()), limit: TREE_TASKS_MAX };
            journal.tasks(query).await?
        } else {
            Vec::new()
        };
        Ok(path.into_iter().map(|source| self.resolve(source, &tasks)).collect())
    }

    fn resolve(&self, source: TreeSource, tasks: &[TaskSummary]) -> Arc<Tree> {
        match source {
            TreeSource::Registered(tree) => tree,
            TreeSource::Recorded(root, created) => {
                let totals = subtree_totals(&root, tasks);
                self.register(Arc::new(Tree::new(root, &created, totals)))
            }
        }
    }

    /// Registers a tree, or returns the one that is registered.
    pub(crate) fn register(&self, tree: Arc<Tree>) -> Arc<Tree> {
        let mut table = self.table();
        let trees = &mut table.registered;
        if let Some(first) = trees.get(&tree.root).and_then(Weak::upgrade) {
            return first;
        }
        if trees.len() >= TREES_CLEANUP_AT {
            trees.retain(|_, tree| tree.strong_count() > 0);
        }
        trees.insert(tree.root.clone(), Arc::downgrade(&tree));
        tree
    }

    /// The tree of a running task.
    pub(crate) fn find(&self, root: &TaskId) -> Option<Arc<Tree>> {
        self.table().registered.get(root).and_then(Weak::upgrade)
    }
}

enum TreeSource {
    Registered(Arc<Tree>),
    Recorded(TaskId, Box<TaskCreated>),
}

impl TreeSource {
    fn parent(&self) -> Option<&TaskId> {
        match self {
            Self::Registered(tree) => tree.parent.as_ref(),
            Self::Recorded(_, created) => created.parent.as_ref(),
        }
    }
}

/// Totals of a task and its descendants.
fn subtree_totals(root: &TaskId, tasks: &[TaskSummary]) -> Totals {
    let inside = subtree_ids(std::slice::from_ref(root), tasks);
    let mut totals = Totals::of(tasks.iter().filter(|task| inside.contains(&task.task_id)));
    totals.tasks = totals.tasks.max(1);
    totals
}

/// Ids of tasks and their descendants; `tasks` is ordered newest first.
pub(crate) fn subtree_ids<'a>(
    roots: &'a [TaskId],
    tasks: &'a [TaskSummary],
) -> HashSet<&'a TaskId> {
    let mut inside: HashSet<&TaskId> = roots.iter().collect();
    // A parent is older than its children.
    for task in tasks.iter().rev() {
        if task.parent.as_ref().is_some_and(|parent| inside.contains(parent)) {
            inside.insert(&task.task_id);
        }
    }
    inside
}

/// The creation event of a task, and its time.
pub(crate) async fn creation(
    task_id: &TaskId,
    journal: &dyn Journal,
) -> Result<(TaskCreated, DateTime<Utc>), OrchestratorError> {
    let after = Position(0);
    let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MIN };
    let first = journal.read(read).await?.events.into_iter().next();
    let first = first.ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?;
    let EventBody::TaskCreated(created) = first.body else {
        return Err(ReplayError::OutOfOrder { task_id: task_id.clone(), seq: first.seq }.into());
    };
    Ok((created, first.at))
}
