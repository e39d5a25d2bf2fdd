//! Cancels tasks: one, or one with all its descendants.
//!
//! A running task cancels itself; a task that does not run is canceled here. A task on a peer is canceled there too,
//! when the peer can be reached (`runner/peer_cancel.rs`). Descendants are canceled
//! after their ancestor, which can dispatch no more then. After a crash in between, recovery cancels
//! the rest.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::port::{JournalError, TaskQuery, TaskSelector};
use antiphon_core::{EventBody, Replied, StatusChanged, TaskId, TaskStatus, TaskSummary};
use futures_util::{StreamExt, stream};

use crate::budget::tree_usage;
use crate::deps::Dispatch;
use crate::inbox::requests;
use crate::inbox::residents::is_resident;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::peer_cancel;
use crate::services::Services;
use crate::task::schedule::run_slots::RunningTask;
use crate::task::schedule::supervise;

/// Maximum number of tasks that are canceled concurrently.
const CANCELED_AT_ONCE: usize = 256;

/// Cancels tasks and their descendants. When this returns, it is durable.
pub(crate) async fn cancel_all(
    services: &Arc<Services>,
    tasks: Vec<TaskId>,
) -> Result<(), OrchestratorError> {
    let mut roots: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for task_id in &tasks {
        let root = services.reader.summary(task_id).await?.root;
        roots.entry(root).or_default().push(task_id.clone());
    }
    cancel_each(services, tasks).await?;
    for (root, tops) in roots {
        cancel_descendants_of_all(services, &tops, &root).await?;
    }
    Ok(())
}

/// Cancels all descendants of a task that can dispatch no more.
pub(crate) async fn cancel_descendants(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let root = services.reader.summary(task_id).await?.root;
    cancel_descendants_of_all(services, std::slice::from_ref(task_id), &root).await
}

async fn cancel_descendants_of_all(
    services: &Arc<Services>,
    tops: &[TaskId],
    root: &TaskId,
) -> Result<(), OrchestratorError> {
    loop {
        let mut below = services.reader.descendants(tops, root).await?;
        below.retain(|task| !task.status.is_terminal());
        if below.is_empty() {
            return Ok(());
        }
        cancel_each(services, below.into_iter().map(|task| task.task_id).collect()).await?;
    }
}

async fn cancel_each(
    services: &Arc<Services>,
    tasks: Vec<TaskId>,
) -> Result<(), OrchestratorError> {
    let ends = tasks.into_iter().map(|task_id| {
        let shared = Arc::clone(services);
        async move { cancel_one(&shared, &task_id).await }
    });
    let mut ends = std::pin::pin!(stream::iter(ends).buffer_unordered(CANCELED_AT_ONCE));
    let mut outcome = Ok(());
    while let Some(ended) = ends.next().await {
        // One that cannot be recorded now keeps none of the others from ending.
        outcome = outcome.and(ended);
    }
    outcome
}

/// The tasks of a tree, by id. First cancels unfinished descendants of ended tasks: the process
/// that ended those may have ended before that.
pub(crate) async fn tree_without_orphans(
    services: &Arc<Services>,
    root: &TaskId,
) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
    let query =
        TaskQuery { which: TaskSelector::Tree(root.clone()), limit: tree_usage::TREE_TASKS_MAX };
    let tasks = services.deps.journal.tasks(query).await?;
    let there: HashMap<TaskId, TaskSummary> =
        tasks.into_iter().map(|task| (task.task_id.clone(), task)).collect();
    let ended = |task: &TaskId| there.get(task).is_some_and(|task| task.status.is_terminal());
    let orphans = there
        .values()
        .filter(|task| !task.status.is_terminal() && task.parent.as_ref().is_some_and(ended));
    cancel_all(services, orphans.map(|task| task.task_id.clone()).collect()).await?;
    Ok(there)
}

/// Cancels one task, unless it has ended.
pub(crate) async fn cancel_one(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    match cancel(services, task_id).await {
        Ok(()) | Err(OrchestratorError::Ended { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Cancels one task: its model call, its tools, and itself.
pub(crate) async fn cancel(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let mut asked = false;
    if services.slots.find(task_id).is_none()
        && runs_in_other_orchestrator(services, task_id).await?
    {
        // The run here forwards the cancellation to the other orchestrator.
        supervise::start(services, task_id);
    }
    loop {
        if let Some(running) = services.slots.find(task_id) {
            running.cancel.cancel();
            wait_released(services, &running).await?;
            asked = true;
            continue;
        }
        let summary = services.reader.summary(task_id).await?;
        if asked && summary.status == TaskStatus::Canceled {
            return Ok(());
        }
        if summary.status.is_terminal() {
            let (task_id, status) = (task_id.clone(), summary.status);
            return Err(OrchestratorError::Ended { task_id, status });
        }
        if cancel_not_running(services, summary).await? {
            // A run may have started just then, with the old state.
            if let Some(running) = services.slots.find(task_id) {
                running.cancel.cancel();
                wait_released(services, &running).await?;
            }
            services.release_tools(task_id).await;
            return Ok(());
        }
    }
}

/// Waits until a canceled task has given up its slot. While the journal cannot be written, no
/// cancellation can become durable: the caller gets an error, and the task ends when it can.
async fn wait_released(
    services: &Services,
    running: &RunningTask,
) -> Result<(), OrchestratorError> {
    tokio::select! {
        biased;
        () = running.released.cancelled() => Ok(()),
        () = services.storage.failed() => {
            let reason = "the task is canceled as soon as the journal can be written".to_owned();
            Err(JournalError::Unavailable { reason }.into())
        }
    }
}

/// Cancels a task that does not run, after its last known event. Returns false when another writer
/// was first.
async fn cancel_not_running(
    services: &Arc<Services>,
    summary: TaskSummary,
) -> Result<bool, OrchestratorError> {
    let last = replies_before_end(services, &summary).await?;
    if !summary.runs_on.is_local() {
        peer_cancel::remember(services, &summary.task_id).await?;
    }
    let shared = Arc::clone(services);
    // On a future of its own: the caller may stop waiting, but the replies must be delivered.
    services
        .background
        .run_detached(async move {
            let mut canceled: Vec<EventBody> = last.iter().cloned().map(EventBody::from).collect();
            canceled.push(StatusChanged::new(TaskStatus::Canceled).into());
            if !shared.append_after(&summary, canceled).await? {
                return Ok(false);
            }
            shared.cache.take(&summary.task_id);
            for replied in &last {
                requests::deliver_reply(&shared, &summary.agent, replied).await?;
            }
            Ok(true)
        })
        .await
}

/// The replies that a task records before it is canceled.
async fn replies_before_end(
    services: &Services,
    summary: &TaskSummary,
) -> Result<Vec<Replied>, OrchestratorError> {
    // The parent orchestrator answers open requests in that case.
    if !is_resident(summary) || services.deps.settings.dispatch == Dispatch::Parent {
        return Ok(Vec::new());
    }
    let state = services.reader.load_without_messages(&summary.task_id).await?;
    Ok(start_agent::final_replies(&state, TaskStatus::Canceled))
}

/// Whether another orchestrator runs a task that has not ended.
async fn runs_in_other_orchestrator(
    services: &Services,
    task_id: &TaskId,
) -> Result<bool, OrchestratorError> {
    if services.deps.runners.is_empty()
        || services.reader.summary(task_id).await?.status.is_terminal()
    {
        return Ok(false);
    }
    let (created, _) = tree_usage::creation(task_id, &*services.deps.journal).await?;
    Ok(services.deps.is_orchestrated(created.runner.as_ref()))
}
