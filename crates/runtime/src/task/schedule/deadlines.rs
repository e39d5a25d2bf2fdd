//! Deadlines: approvals expire, overdue requests are answered, suspended tasks are started.
//!
//! One future waits for the next deadline; each deadline costs one entry.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::{ApprovalId, EventBody, InteractionId, TaskCreated, TaskId};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Notify;

use crate::budget::tree_usage;
use crate::inbox::overdue_requests;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::storage::is_unavailable;
use crate::task::control::approval;
use crate::task::limits;
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::schedule::supervise;

/// Longest wait, so that a suspended machine or a changed clock delays deadlines only a little.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// When a reply that could not be recorded is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What happens at a deadline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    waiting: Mutex<Entries<Duration>>,
    /// What happens at a date, whatever was done to the wall clock.
    dates: Mutex<Entries<DateTime<Utc>>>,
    changed: Notify,
    /// Set once the future that waits for deadlines runs.
    is_watched: OnceLock<()>,
}

impl Deadlines {
    pub(crate) fn add(&self, moment: Duration, due: Due) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(moment, due);
        self.changed.notify_one();
    }

    fn add_date(&self, at: DateTime<Utc>, due: Due) {
        self.dates.lock().unwrap_or_else(PoisonError::into_inner).insert(at, due);
        self.changed.notify_one();
    }

    /// Drops deadlines before their time.
    pub(crate) fn drop_settled(&self, settled: &[Due]) {
        if settled.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dates = self.dates.lock().unwrap_or_else(PoisonError::into_inner);
        for due in settled {
            waiting.remove(due);
            dates.remove(due);
        }
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

/// Deadlines in order, and where each is, so that one can be dropped before its time.
#[derive(Debug)]
struct Entries<T> {
    in_order: BTreeSet<(T, Due)>,
    places: HashMap<Due, Vec<T>>,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { in_order: BTreeSet::new(), places: HashMap::new() }
    }
}

impl<T: Ord + Copy> Entries<T> {
    fn insert(&mut self, at: T, due: Due) {
        if self.in_order.insert((at, due.clone())) {
            self.places.entry(due).or_default().push(at);
        }
    }

    fn remove(&mut self, due: &Due) {
        for at in self.places.remove(due).unwrap_or_default() {
            self.in_order.remove(&(at, due.clone()));
        }
    }

    fn pop_first(&mut self) -> Option<Due> {
        let (at, due) = self.in_order.pop_first()?;
        if let Some(places) = self.places.get_mut(&due) {
            places.retain(|place| *place != at);
            if places.is_empty() {
                self.places.remove(&due);
            }
        }
        Some(due)
    }
}

/// Takes the first entry if it is due; otherwise says when it is, and what time it is.
fn pop<T: Ord + Copy>(entries: &Mutex<Entries<T>>, now: T) -> Result<Due, Option<(T, T)>> {
    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
    let first = entries.in_order.first().map(|(at, _)| *at);
    match first.filter(|at| *at <= now).and_then(|_| entries.pop_first()) {
        Some(due) => Ok(due),
        None => Err(first.map(|at| (at, now))),
    }
}

/// What need not happen any more once these events of a task are recorded: its answered requests and approvals do not
/// expire, and a task that has ended is not started.
pub(crate) fn settled_by(task_id: &TaskId, events: &[EventBody]) -> Vec<Due> {
    let settled = |body: &EventBody| {
        if let EventBody::Replied(replied) = body {
            let is_final = replied.status.is_final();
            return is_final.then(|| Due::Answer(task_id.clone(), replied.in_reply_to));
        }
        if let EventBody::ApprovalDecided(decided) = body {
            return Some(Due::Approval(decided.approval_id.clone()));
        }
        body.ends_task().then(|| Due::Task(task_id.clone()))
    };
    events.iter().filter_map(settled).collect()
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
                    if let Err(error) = overdue_requests::answer_overdue(&shared, &task_id, request).await {
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
    watch_wall_clock_of(services, task_id, &created, at);
    Ok(())
}

/// The same for a task whose creation, at this time, is known.
pub(crate) fn watch_wall_clock_of(
    services: &Arc<Services>,
    task_id: &TaskId,
    created: &TaskCreated,
    at: DateTime<Utc>,
) {
    limits::note_deadline(&services.time, created, at);
    if let Some(max) = created.limits.wall_clock_s_max {
        let until = at + TimeDelta::seconds(i64::from(max.get()));
        watch_task(services, until, task_id.clone());
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Replied, ResponseStatus, Sender, StatusChanged, TaskStatus};
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    fn replied(request: InteractionId, status: ResponseStatus) -> EventBody {
        let result = Value::Null;
        let to = Sender::User;
        Replied { in_reply_to: request, to, status, result, reply_to: None }.into()
    }

    #[test]
    fn what_is_answered_or_ended_has_no_deadline_any_more() {
        let (deadlines, task) = (Deadlines::default(), TaskId::parse("task").unwrap());
        let request = InteractionId::from(Uuid::from_u128(1));
        let week = Duration::from_secs(7 * 24 * 3600);
        let count = || deadlines.waiting.lock().unwrap().in_order.len();
        let note = |body: EventBody| {
            deadlines.drop_settled(&settled_by(&task, &[body]));
        };
        deadlines.add(week, Due::Answer(task.clone(), request));
        deadlines.add(week, Due::Task(task.clone()));
        deadlines.add(2 * week, Due::Task(task.clone()));
        note(replied(request, ResponseStatus::Accepted));
        assert_eq!(count(), 3, "an announcement is no answer");
        note(replied(request, ResponseStatus::Completed));
        assert_eq!(count(), 2);
        note(StatusChanged::new(TaskStatus::Running).into());
        assert_eq!(count(), 2);
        note(StatusChanged::new(TaskStatus::Completed).into());
        assert_eq!(count(), 0);
        assert!(deadlines.waiting.lock().unwrap().places.is_empty());
    }

    #[test]
    fn a_deadline_that_has_passed_leaves_nothing_behind() {
        let (deadlines, task) = (Deadlines::default(), TaskId::parse("task").unwrap());
        deadlines.add(Duration::from_secs(1), Due::Task(task.clone()));
        deadlines.add(Duration::from_secs(1), Due::Task(task.clone()));
        assert_eq!(pop(&deadlines.waiting, Duration::from_secs(1)), Ok(Due::Task(task)));
        let entries = deadlines.waiting.lock().unwrap();
        assert!(entries.in_order.is_empty() && entries.places.is_empty());
    }
}
