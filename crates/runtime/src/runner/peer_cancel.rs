//! Cancellations that a peer has to get.
//!
//! A task that ends here while a peer runs it is canceled there. The peer may be down, so nothing waits for it:
//! before the end is recorded here, an *order* is, a task of its own that has no model. The order tries until the
//! peer has canceled its task, also after restarts of this process. Canceling the order gives up.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Append, Appended, Expected, IdempotencyKey, RemoteError, RemoteTask, TaskFilter, TaskQuery,
    TaskSelector,
};
use antiphon_core::{
    MessageAppended, ORDERS, PeerCancel, RunsOn, SessionId, StatusChanged, TaskCreated, TaskId,
    TaskStatus, UserMessage,
};
use serde_json::json;

use crate::budget::tree_usage;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::run_slots::RunningTask;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;
use crate::task::step::RunEnd;

/// Pause before the second attempt; it doubles with each further one.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Longest pause between two attempts.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// Maximum number of orders that are started at once.
const ORDERS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

impl Orchestrator {
    /// The task that was created under this key, if one was.
    pub async fn task_of_key(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<TaskId>, OrchestratorError> {
        let answered = self.services.deps.journal.answered(key).await?;
        Ok(answered.map(|appended| appended.task_id))
    }

    /// Cancels the task that was created under this key. When there is none, a creation under this key that comes
    /// later finds a canceled task. Returns the id of the task. When this returns, the cancellation is durable.
    pub async fn cancel_by_key(&self, key: IdempotencyKey) -> Result<TaskId, OrchestratorError> {
        let services = &self.services;
        let now = services.deps.clock.now();
        // A creation with this key beside it may find the canceled task: it must not start early.
        let written = services.creation_keys.begin(&key);
        let created = TaskCreated::new(ORDERS, SessionId::from(services.deps.ids.next()));
        let text = "Canceled before it was created";
        let append = Append {
            task_id: TaskId::from(services.deps.ids.next()),
            expected: Expected::NoTask,
            at: now,
            events: vec![
                created.into(),
                MessageAppended::new(UserMessage::text(text, now)).into(),
                StatusChanged::new(TaskStatus::Canceled).into(),
            ],
            key: Some(key),
        };
        let appended = services.append(append).await?;
        drop(written);
        if appended.deduplicated {
            match self.cancel(&appended.task_id).await {
                Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(appended.task_id)
    }

    /// Starts the orders that deliver cancellations to peers, in a process that does not
    /// [`recover`](Self::recover). Does not wait for them.
    pub fn deliver_cancels(&self) {
        let services = Arc::clone(&self.services);
        self.services.background.tracker.spawn(async move {
            if let Err(error) = start_orders(&services).await {
                tracing::warn!(%error, "cancellations for peers were not found");
            }
        });
    }
}

/// Whether a task that ends here may still run on a peer. An order is not such a task.
pub(crate) fn may_run_on_peer(services: &Services, created: &TaskCreated) -> bool {
    let Some(runner) = &created.runner else { return false };
    // A process that only records commands has no runners.
    let is_remote = services.deps.is_orchestrated(Some(runner)) || runner.peer().is_some();
    is_remote && created.cancels.is_none()
}

/// The append that records an order, once for each task.
pub(crate) fn order(services: &Services, state: &TaskState) -> Append {
    let now = services.deps.clock.now();
    let place = state.created.runner.as_ref().map_or_else(RunsOn::default, RunsOn::from);
    let text = format!("Cancel task {} on {place}", state.task_id);
    let created = TaskCreated {
        runner: state.created.runner.clone(),
        payer: state.created.payer.clone(),
        cancels: Some(PeerCancel {
            task_id: state.task_id.clone(),
            remote_task_id: state.relayed.as_ref().map(|relayed| relayed.task_id.clone()),
        }),
        ..TaskCreated::new(ORDERS, SessionId::from(services.deps.ids.next()))
    };
    let message = MessageAppended::new(UserMessage::text(text, now));
    Append {
        task_id: TaskId::from(services.deps.ids.next()),
        expected: Expected::NoTask,
        at: now,
        events: vec![created.into(), message.into()],
        key: Some(IdempotencyKey(format!("cancel_on_peer:{}", state.task_id))),
    }
}

/// Starts an order that is recorded.
pub(crate) fn start(services: &Arc<Services>, order: &Appended) {
    supervise::start(services, &order.task_id);
}

/// Records that the peer of a task has to cancel it, if a peer may run it.
pub(crate) async fn remember(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let state = services.reader.load_without_messages(task_id).await?;
    if may_run_on_peer(services, &state.created) {
        let appended = services.append(order(services, &state)).await?;
        start(services, &appended);
    }
    Ok(())
}

/// Starts all orders that have not ended.
pub(crate) async fn start_orders(services: &Arc<Services>) -> Result<(), OrchestratorError> {
    let unfinished = TaskStatus::ALL.into_iter().filter(|status| !status.is_terminal());
    let filter = TaskFilter {
        statuses: unfinished.collect(),
        agent: Some(ORDERS.to_owned()),
        roots: true,
        ..TaskFilter::default()
    };
    let query = TaskQuery { which: TaskSelector::Matching(filter), limit: ORDERS_MAX };
    for task in services.deps.journal.tasks(query).await? {
        let journal = &*services.deps.journal;
        if tree_usage::creation(&task.task_id, journal).await?.0.cancels.is_some() {
            supervise::start(services, &task.task_id);
        }
    }
    Ok(())
}

/// Runs an order until the peer has canceled its task.
pub(crate) async fn deliver(
    services: &Arc<Services>,
    state: &TaskState,
    cancel: &PeerCancel,
    running: &RunningTask,
) -> Result<RunEnd, OrchestratorError> {
    let mut pause = RETRY_AFTER;
    let mut reported = state.detail.is_some();
    loop {
        running.heartbeat();
        if services.background.stop.is_cancelled() {
            return Ok(RunEnd::Waiting);
        }
        if running.cancel.is_cancelled() {
            record(services, &state.task_id, StatusChanged::new(TaskStatus::Canceled)).await?;
            return Ok(RunEnd::Ended);
        }
        let attempt = tokio::select! {
            attempt = attempt(services, state, cancel) => attempt,
            () = running.cancel.cancelled() => continue,
            () = services.background.stop.cancelled() => continue,
        };
        let reason = match attempt {
            Ok(()) | Err(RemoteError::Ended) => {
                let detail = Some(json!({ "canceled": cancel.task_id }));
                let done = StatusChanged { detail, ..StatusChanged::new(TaskStatus::Completed) };
                record(services, &state.task_id, done).await?;
                return Ok(RunEnd::Ended);
            }
            Err(RemoteError::Unavailable { reason } | RemoteError::Refused { reason }) => reason,
        };
        tracing::debug!(task.id = %cancel.task_id, reason, "the peer did not cancel the task yet");
        if !std::mem::replace(&mut reported, true) {
            let error = format!("the cancellation is delivered when the peer answers: {reason}");
            let detail = Some(json!({ "code": "peer_unavailable", "error": error }));
            let waits = StatusChanged { detail, ..StatusChanged::new(TaskStatus::Running) };
            record(services, &state.task_id, waits).await?;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = running.cancel.cancelled() => {}
            () = services.background.stop.cancelled() => {}
        }
        pause = (pause * 2).min(RETRY_AFTER_MAX);
    }
}

async fn attempt(
    services: &Services,
    state: &TaskState,
    cancel: &PeerCancel,
) -> Result<(), RemoteError> {
    let runner = state.created.runner.as_ref();
    let known = runner.and_then(|config| Some((services.deps.runner(&config.kind)?, config)));
    let Some((runner, config)) = known else {
        let reason = "there is no runner for it here".to_owned();
        return Err(RemoteError::Unavailable { reason });
    };
    let task = RemoteTask {
        config: &config.config,
        task_id: &cancel.task_id,
        remote_task_id: cancel.remote_task_id.as_ref(),
    };
    runner.cancel_remote(task).await
}

/// Records a new status of an order, unless it has ended.
async fn record(
    services: &Arc<Services>,
    task_id: &TaskId,
    change: StatusChanged,
) -> Result<(), OrchestratorError> {
    loop {
        let summary = services.reader.summary(task_id).await?;
        if summary.status.is_terminal()
            || services.append_after(&summary, vec![change.clone().into()]).await?
        {
            return Ok(());
        }
    }
}
