//! What a task and everything below it have used up, shared by those of them that run.
//!
//! Every task with something below it is the top of a tree. What is used anywhere is counted in the
//! tree of each task above it, so that a limit of any of them holds for all that it dispatched.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use antiphon_core::port::{Journal, Read, TaskQuery, TaskSelector};
use antiphon_core::{EventBody, Position, TaskCreated, TaskId, TaskLimits, TaskSummary};
use chrono::{DateTime, Utc};

use crate::limits::{LimitReached, Scope, Totals};
use crate::orchestrator_error::OrchestratorError;
use crate::state::{ReplayError, TaskState};

/// Tasks of a tree that are looked at, at most.
pub(crate) const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// Trees that are remembered before those that nobody works on are thrown away.
const TREES_SWEPT: usize = 2 * crate::running::TASKS_RUNNING_MAX;

/// A task and everything below it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) top: TaskId,
    parent: Option<TaskId>,
    pub(crate) depth: u32,
    pub(crate) limits: TaskLimits,
    /// The key that pays for it.
    pub(crate) payer: Option<String>,
    totals: Mutex<Totals>,
}

impl Tree {
    fn new(top: TaskId, created: &TaskCreated, totals: Totals) -> Self {
        let mut limits = created.limits;
        if created.resident {
            // They hold for what it does itself, each time it is woken.
            (limits.turns_max, limits.tool_calls_max) = (None, None);
        }
        Self {
            top,
            parent: created.parent.clone(),
            depth: created.depth,
            limits,
            payer: created.payer.clone(),
            totals: Mutex::new(totals),
        }
    }

    /// The tree of a task that is about to be created.
    pub(crate) fn sprout(top: TaskId, created: &TaskCreated) -> Arc<Self> {
        Arc::new(Self::new(top, created, Totals { tasks: 1, ..Totals::default() }))
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it may go and how far it went.
    pub(crate) fn scope(&self) -> Scope {
        Scope { limits: self.limits, totals: self.totals().clone() }
    }

    /// Adds what was written of one of its tasks.
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

    /// Makes room for so many more tasks, if it may have them.
    fn reserve(&self, more: u32) -> Result<(), LimitReached> {
        let mut totals = self.totals();
        let tasks = totals.tasks.saturating_add(more);
        let max = self.limits.tasks_max.map(std::num::NonZeroU32::get);
        match max.or((self.parent.is_none()).then_some(crate::limits::TASKS_DEFAULT)) {
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

/// Makes room for so many more tasks in all of these trees, or in none.
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

/// The trees whose tasks run.
#[derive(Debug, Default)]
pub(crate) struct Trees(Mutex<HashMap<TaskId, Weak<Tree>>>);

impl Trees {
    /// The trees that a task belongs to, its own first: those that others share already, or as the
    /// journal has them.
    pub(crate) async fn of(
        &self,
        state: &TaskState,
        journal: &dyn Journal,
    ) -> Result<Vec<Arc<Tree>>, OrchestratorError> {
        let mut path = Vec::new();
        let mut missing = false;
        let mut next = Some(state.task_id.clone());
        while let Some(top) = next {
            let step = match self.shared(&top) {
                Some(tree) => Step::Shared(tree),
                None if top == state.task_id => Step::Read(top, Box::new(state.created.clone())),
                None => Step::Read(top.clone(), Box::new(beginning(&top, journal).await?.0)),
            };
            next = step.parent().cloned();
            missing |= matches!(step, Step::Read(..));
            path.push(step);
        }
        // A task that has asked nobody yet has dispatched nobody either.
        let fresh = path.len() == 1 && state.turns == 0;
        let root = state.created.root.as_ref().unwrap_or(&state.task_id);
        let tasks = if missing && !fresh {
            let query =
                TaskQuery { which: TaskSelector::Tree(root.clone()), limit: TREE_TASKS_MAX };
            journal.tasks(query).await?
        } else {
            Vec::new()
        };
        Ok(path.into_iter().map(|step| self.take(step, &tasks)).collect())
    }

    fn take(&self, step: Step, tasks: &[TaskSummary]) -> Arc<Tree> {
        match step {
            Step::Shared(tree) => tree,
            Step::Read(top, created) => {
                let totals = below(&top, tasks);
                self.share(Arc::new(Tree::new(top, &created, totals)))
            }
        }
    }

    /// Lets others share a tree, or takes the one that is shared.
    pub(crate) fn share(&self, tree: Arc<Tree>) -> Arc<Tree> {
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = trees.get(&tree.top).and_then(Weak::upgrade) {
            return first;
        }
        if trees.len() >= TREES_SWEPT {
            trees.retain(|_, tree| tree.strong_count() > 0);
        }
        trees.insert(tree.top.clone(), Arc::downgrade(&tree));
        tree
    }

    /// The tree of a task that runs.
    pub(crate) fn shared(&self, top: &TaskId) -> Option<Arc<Tree>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(top).and_then(Weak::upgrade)
    }
}

enum Step {
    Shared(Arc<Tree>),
    Read(TaskId, Box<TaskCreated>),
}

impl Step {
    fn parent(&self) -> Option<&TaskId> {
        match self {
            Self::Shared(tree) => tree.parent.as_ref(),
            Self::Read(_, created) => created.parent.as_ref(),
        }
    }
}

/// What a task and everything below it have used up.
fn below(top: &TaskId, tasks: &[TaskSummary]) -> Totals {
    let inside = descent(std::slice::from_ref(top), tasks);
    let mut totals = Totals::of(tasks.iter().filter(|task| inside.contains(&task.task_id)));
    totals.tasks = totals.tasks.max(1);
    totals
}

/// Tasks and everything below them; `tasks` are listed the newest first.
pub(crate) fn descent<'a>(tops: &'a [TaskId], tasks: &'a [TaskSummary]) -> HashSet<&'a TaskId> {
    let mut inside: HashSet<&TaskId> = tops.iter().collect();
    // A parent is older than its children.
    for task in tasks.iter().rev() {
        if task.parent.as_ref().is_some_and(|parent| inside.contains(parent)) {
            inside.insert(&task.task_id);
        }
    }
    inside
}

/// How a task began, and when.
pub(crate) async fn beginning(
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
