//! A task and its descendants, also those on peers.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroUsize;

use antiphon_core::port::{Page, Read, TaskQuery, TaskSelector};
use antiphon_core::{EventBody, PeerTasks, Position, TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, OrchestratorError};

/// Tasks of one tree that are read, at most.
pub const TREE_TASKS_MAX: usize = 20_000;

/// One more than is read says that a tree is too large.
const TREE_LIMIT: NonZeroUsize = NonZeroUsize::new(TREE_TASKS_MAX + 1).unwrap();

/// Events that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Whether a tree has the tasks that peers dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeScope {
    /// Only tasks whose events the journal has.
    Journal,
    /// Also tasks on peers, as the peers last listed them.
    WithPeers,
}

/// A task and its descendants, the oldest first, so that a parent precedes its children. `None` when
/// the whole tree has more than [`TREE_TASKS_MAX`] tasks; empty when there is no such task.
pub async fn task_and_descendants(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    scope: TreeScope,
) -> Result<Option<Vec<TaskSummary>>, OrchestratorError> {
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let Some(top) = orchestrator.tasks(one).await?.pop() else { return Ok(Some(Vec::new())) };
    let query = TaskQuery { which: TaskSelector::Tree(top.root), limit: TREE_LIMIT };
    let mut found = orchestrator.tasks(query).await?;
    if found.len() > TREE_TASKS_MAX {
        return Ok(None);
    }
    found.reverse();
    let mut included = HashSet::from([task_id.clone()]);
    let tasks = found.into_iter().filter(|task| {
        let is_descendant = task.parent.as_ref().is_some_and(|parent| included.contains(parent));
        if is_descendant {
            included.insert(task.task_id.clone());
        }
        is_descendant || included.contains(&task.task_id)
    });
    // A list of a server has the tasks on peers already.
    let mut tasks = without_peer_tasks(tasks.collect());
    match scope {
        TreeScope::Journal => {}
        TreeScope::WithPeers => {
            let added = peer_tasks_below(|query| orchestrator.read(query), &tasks).await?;
            tasks.extend(added);
        }
    }
    Ok((tasks.len() <= TREE_TASKS_MAX).then_some(tasks))
}

/// Names of the peers that a task and the unfinished tasks below it run on.
pub async fn peers_below(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<Vec<String>, OrchestratorError> {
    let tree = task_and_descendants(orchestrator, task_id, TreeScope::Journal).await?;
    let unfinished = tree.into_iter().flatten().filter(|task| !task.status.is_terminal());
    let peers: BTreeSet<String> = unfinished.filter_map(|task| task.runs_on.peer).collect();
    Ok(peers.into_iter().collect())
}

/// The tasks whose events the journal has: a task on a peer dispatches its children there.
fn without_peer_tasks(tasks: Vec<TaskSummary>) -> Vec<TaskSummary> {
    let on_peer = |task: &&TaskSummary| task.runs_on.peer.is_some();
    let on_peers: HashSet<TaskId> =
        tasks.iter().filter(on_peer).map(|task| task.task_id.clone()).collect();
    let is_peers =
        |task: &TaskSummary| task.parent.as_ref().is_some_and(|parent| on_peers.contains(parent));
    tasks.into_iter().filter(|task| !is_peers(task)).collect()
}

/// The tasks that peers dispatched for these tasks, as the peers last listed them. `read` reads the journal, wherever
/// it is.
pub async fn peer_tasks_below<E, F: Future<Output = Result<Page, E>>>(
    read: impl Fn(Read) -> F,
    tasks: &[TaskSummary],
) -> Result<Vec<TaskSummary>, E> {
    let known: HashSet<&TaskId> = tasks.iter().map(|task| &task.task_id).collect();
    let mut added = Vec::new();
    for task in tasks.iter().filter(|task| task.runs_on.peer.is_some()) {
        let mut peer_tasks = PeerTasks::default();
        let mut after = Position(0);
        loop {
            let task_id = Some(task.task_id.clone());
            let page = read(Read { task_id, after, limit: PAGE }).await?;
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
        // An id of a task here is not a peer's to use; the list of a server has these tasks already.
        added.extend(peer_tasks.below(task).into_iter().filter(|it| !known.contains(&it.task_id)));
    }
    Ok(added)
}
