//! Deadlines: approvals expire, overdue requests are answered, suspended tasks are started.
//!
//! One future sleeps until the next deadline; each deadline costs one entry.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::{ApprovalId, InteractionId, TaskId};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Notify;

use crate::budget::tree_usage;
use crate::inbox::requests;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::storage::is_unavailable;
use crate::task::control::approval;
use crate::task::limits;
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::schedule::supervise;

/// Longest sleep, so that a suspended machine or a changed clock delays deadlines only a little.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// When a reply that could not be recorded is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

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

/// All deadlines, ordered by their moments on the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    waiting: Mutex<BTreeSet<(Duration, Due)>>,
    /// What happens at a date, whatever was done to the wall clock.
    dates: Mutex<BTreeSet<(DateTime<Utc>, Due)>>,
    changed: Notify,
    /// Set once the future that waits for deadlines runs.
    is_watched: OnceLock<()>,
}

impl Deadlines {
    pub(crate) fn add(&self, moment: Duration, due: Due) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert((moment, due));
        self.changed.notify_one();
    }

    fn add_date(&self, at: DateTime<Utc>, due: Due) {
        self.dates.lock().unwrap_or_else(PoisonError::into_inner).insert((at, due));
        self.changed.notify_one();
    }

    /// Returns the next deadline that has passed. Cancel safe: a deadline that was not returned stays.
    pub(crate) async fn next(&self, time: &DeadlineClock) -> Due {
        loop {
            let changed = self.changed.notified();
            let wait = match (pop(&self.waiting, time.monotonic()), pop(&self.dates, time.date())) {
                (Err(moment), Err(date)) => {
                    let moment = moment.map(|(at, now)| at.saturating_sub(now));
                    let date = date.map(|(at, now)| (at - now).to_std().unwrap_or_default());
                    moment.into_iter().chain(date).min()
                }
                (Ok(due), Ok(later)) => {
                    self.add_date(time.date(), later);
                    return due;
                }
                (Ok(due), Err(_)) | (Err(_), Ok(due)) => return due,
            };
            match wait {
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

/// Takes the first entry if it is due; otherwise says when it is, and what time it is.
fn pop<T: Ord + Copy>(entries: &Mutex<BTreeSet<(T, Due)>>, now: T) -> Result<Due, Option<(T, T)>> {
    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
    let first = entries.first().map(|(at, _)| *at);
    match first.filter(|at| *at <= now).and_then(|_| entries.pop_first()) {
        Some((_, due)) => Ok(due),
        None => Err(first.map(|at| (at, now))),
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

/// Starts the task at this date, also when the wall clock is set meanwhile.
pub(crate) fn watch_date(services: &Arc<Services>, at: DateTime<Utc>, task_id: TaskId) {
    services.deadlines.add_date(at, Due::Task(task_id));
    run_watch(services);
}

fn watch(services: &Arc<Services>, at: DateTime<Utc>, due: Due) {
    services.deadlines.add(services.time.moment(at), due);
    run_watch(services);
}

/// Runs the future that waits for deadlines, once.
fn run_watch(services: &Arc<Services>) {
    if services.deadlines.is_watched.set(()).is_err() {
        return;
    }
    let shared = Arc::clone(services);
    services.background.tracker.spawn(async move {
        loop {
            let due = tokio::select! {
                due = shared.deadlines.next(&shared.time) => due,
                () = shared.background.stop.cancelled() => return,
            };
            match due {
                Due::Approval(approval_id) => approval::expire(&shared, approval_id).await,
                Due::Task(task_id) => supervise::start(&shared, &task_id),
                Due::Answer(task_id, request) => {
                    if let Err(error) = requests::answer_overdue(&shared, &task_id, request).await {
                        tracing::warn!(task.id = %task_id, %error, "an overdue request was not answered");
                        if is_unavailable(&error) {
                            let later = shared.time.monotonic() + RETRY_AFTER;
                            shared.deadlines.add(later, Due::Answer(task_id, request));
                        }
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
    limits::know_deadline(&services.time, &created, at);
    if let Some(max) = created.limits.wall_clock_s_max {
        let until = at + TimeDelta::seconds(i64::from(max.get()));
        watch_task(services, until, task_id.clone());
    }
    Ok(())
}
