//! Deadlines: approvals expire, overdue requests are answered, suspended tasks are started.
//!
//! One future sleeps until the next deadline; each deadline costs one entry.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_core::{ApprovalId, InteractionId, TaskId};
use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::budget::tree_usage;
use crate::inbox::requests;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::control::approval;
use crate::task::schedule::supervise;

/// Longest sleep, so that a suspended machine or a changed clock delays deadlines only a little.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// What happens at a deadline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// An approval expires.
    Approval(ApprovalId),
    /// A task is started.
    Task(TaskId),
    /// A request to a task becomes overdue.
    Answer(TaskId, InteractionId),
}

/// All deadlines, ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    waiting: Mutex<BTreeSet<(DateTime<Utc>, Due)>>,
    changed: Notify,
    /// Set once the future that waits for deadlines runs.
    is_watched: OnceLock<()>,
}

impl Deadlines {
    pub(crate) fn add(&self, at: DateTime<Utc>, due: Due) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert((at, due));
        self.changed.notify_one();
    }

    /// Returns the next deadline that has passed. Cancel safe: a deadline that was not returned stays.
    pub(crate) async fn next(&self, clock: &Arc<dyn Clock>) -> Due {
        loop {
            let now = clock.now();
            let first = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                match waiting.first() {
                    Some((at, _)) if *at <= now => waiting.pop_first(),
                    Some(_) | None => None,
                }
            };
            if let Some((_, due)) = first {
                return due;
            }
            let next = {
                let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.first().map(|(at, _)| (*at - now).to_std().unwrap_or_default())
            };
            let changed = self.changed.notified();
            match next {
                Some(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait.min(SLEEP_MAX)) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }
}

/// Expires the approval at `at`.
pub(crate) fn watch_approval(services: &Arc<Services>, at: DateTime<Utc>, approval_id: ApprovalId) {
    watch(services, at, Due::Approval(approval_id));
}

/// Starts the task at `at`.
pub(crate) fn watch_task(services: &Arc<Services>, at: DateTime<Utc>, task_id: TaskId) {
    watch(services, at, Due::Task(task_id));
}

/// Answers the request as overdue at `at`.
pub(crate) fn watch_reply(
    services: &Arc<Services>,
    at: DateTime<Utc>,
    task_id: TaskId,
    request: InteractionId,
) {
    watch(services, at, Due::Answer(task_id, request));
}

fn watch(services: &Arc<Services>, at: DateTime<Utc>, due: Due) {
    services.deadlines.add(at, due);
    if services.deadlines.is_watched.set(()).is_err() {
        return;
    }
    let shared = Arc::clone(services);
    services.background.tracker.spawn(async move {
        loop {
            let due = tokio::select! {
                due = shared.deadlines.next(&shared.deps.clock) => due,
                () = shared.background.stop.cancelled() => return,
            };
            match due {
                Due::Approval(approval_id) => approval::expire(&shared, approval_id).await,
                Due::Task(task_id) => supervise::start(&shared, &task_id),
                Due::Answer(task_id, request) => {
                    if let Err(error) = requests::answer_overdue(&shared, &task_id, request).await {
                        tracing::warn!(task.id = %task_id, %error, "an overdue request was not answered");
                    }
                }
            }
        }
    });
}

/// Starts the task when its wall-clock limit is reached.
pub(crate) async fn watch_wall_clock(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let (created, at) = tree_usage::creation(task_id, &*services.deps.journal).await?;
    if let Some(max) = created.limits.wall_clock_s_max {
        let until = at + chrono::TimeDelta::seconds(i64::from(max.get()));
        watch_task(services, until, task_id.clone());
    }
    Ok(())
}
