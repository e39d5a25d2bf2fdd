//! Run slots: which tasks run. A suspended task gives up its slot and costs nothing. When all slots are
//! taken, a task is queued for the next free one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::{StatusChanged, TaskId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::orchestrator_error::OrchestratorError;

/// Maximum number of running tasks. Further tasks are queued for a run slot.
pub const TASKS_RUNNING_MAX: usize = 16_384;

/// Maximum number of stop reasons that are kept; the oldest is dropped.
const STOPPED_MAX: usize = 256;

/// A task that has a run slot.
#[derive(Debug)]
pub(crate) struct RunningTask {
    /// Fires when the task must end.
    pub(crate) cancel: CancellationToken,
    /// Ends the current model call and tool calls.
    pub(crate) interrupt: Interrupt,
    /// Fires when the task has given up its slot.
    pub(crate) released: CancellationToken,
    /// Why the task stopped, when it neither ended nor is suspended.
    pub(crate) stop_reason: OnceLock<OrchestratorError>,
    /// Whether the task waits for a user or a client.
    pub(crate) suspended: AtomicBool,
    /// The write of the task's creation, if the run began before its end.
    creation: Option<Creation>,
    started_at: Instant,
    /// The last heartbeat, in milliseconds since the start.
    heartbeat_ms: AtomicU64,
}

/// The write of the creation of a task.
#[derive(Debug, Default)]
struct Creation {
    /// Fires when the journal has the task.
    recorded: CancellationToken,
    /// Fires when the journal did not take the task.
    failed: CancellationToken,
}

impl RunningTask {
    fn new(creation: Option<Creation>) -> Self {
        Self {
            cancel: CancellationToken::new(),
            interrupt: Interrupt::default(),
            released: CancellationToken::new(),
            stop_reason: OnceLock::new(),
            suspended: AtomicBool::new(false),
            creation,
            started_at: Instant::now(),
            heartbeat_ms: AtomicU64::new(0),
        }
    }

    /// Returns when the journal has the task. What a run lets out, except its first model request, waits for this.
    pub(crate) async fn recorded(&self) {
        if let Some(creation) = &self.creation {
            creation.recorded.cancelled().await;
        }
    }

    /// Whether the journal has the task.
    pub(crate) fn is_recorded(&self) -> bool {
        self.creation.as_ref().is_none_or(|creation| creation.recorded.is_cancelled())
    }

    /// Returns when the journal did not take the task: it does not exist.
    pub(crate) async fn creation_failed(&self) {
        match &self.creation {
            Some(creation) => creation.failed.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the wait for the creation.
    pub(crate) fn set_recorded(&self, is_recorded: bool) {
        let Some(creation) = &self.creation else { return };
        if is_recorded { creation.recorded.cancel() } else { creation.failed.cancel() }
    }

    /// Records a heartbeat.
    pub(crate) fn heartbeat(&self) {
        let passed = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heartbeat_ms.store(passed, Ordering::Relaxed);
    }

    /// Time since the last heartbeat.
    pub(crate) fn since_heartbeat(&self) -> Duration {
        let last =
            self.started_at + Duration::from_millis(self.heartbeat_ms.load(Ordering::Relaxed));
        last.elapsed()
    }

    /// Returns when there was no heartbeat for `heartbeat_timeout`.
    pub(crate) async fn heartbeat_missing(&self, heartbeat_timeout: Duration) {
        loop {
            let silence = self.since_heartbeat();
            if silence >= heartbeat_timeout {
                return;
            }
            tokio::time::sleep(heartbeat_timeout.saturating_sub(silence)).await;
        }
    }
}

/// Ends the current model call and tool calls of a run. Can be used again.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(Mutex<PendingInterrupt>);

#[derive(Debug, Default)]
struct PendingInterrupt {
    token: CancellationToken,
    /// What the task records, once the token has fired.
    status: Option<StatusChanged>,
}

impl Interrupt {
    fn pending(&self) -> MutexGuard<'_, PendingInterrupt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fires with the next interrupt.
    pub(crate) fn token(&self) -> CancellationToken {
        self.pending().token.clone()
    }

    /// Interrupts the run. It records `status`.
    pub(crate) fn fire(&self, status: StatusChanged) {
        let mut pending = self.pending();
        pending.status.get_or_insert(status);
        pending.token.cancel();
    }

    /// Whether it has fired and was not handled.
    pub(crate) fn has_fired(&self) -> bool {
        self.pending().token.is_cancelled()
    }

    /// What to record if it has fired; handles it.
    pub(crate) fn take(&self) -> Option<StatusChanged> {
        let mut pending = self.pending();
        let status = pending.status.take();
        if status.is_some() {
            pending.token = CancellationToken::new();
        }
        status
    }
}

/// The run slots, and the queue for them.
#[derive(Debug, Default)]
pub(crate) struct RunSlots {
    table: Mutex<SlotTable>,
    /// Notified whenever a slot becomes free.
    freed: Notify,
    /// Notified when a task is suspended or stops early.
    pub(crate) suspended: Notify,
}

#[derive(Debug, Default)]
struct SlotTable {
    running: HashMap<TaskId, Arc<RunningTask>>,
    /// `RunningTask` tasks that have to check for new events before they give up their slot.
    recheck: HashSet<TaskId>,
    /// Tasks that wait for a slot, in order.
    queued: VecDeque<TaskId>,
    /// Why tasks stopped early, the latest last.
    stopped: VecDeque<(TaskId, OrchestratorError)>,
}

impl RunSlots {
    fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, task_id: &TaskId) -> Option<Arc<RunningTask>> {
        self.table().running.get(task_id).cloned()
    }

    /// The tasks that run or are queued for a slot.
    pub(crate) fn active(&self) -> Vec<TaskId> {
        let table = self.table();
        table.running.keys().chain(&table.queued).cloned().collect()
    }

    /// Whether a task runs or is queued for a slot.
    pub(crate) fn is_active(&self, task_id: &TaskId) -> bool {
        let table = self.table();
        table.running.contains_key(task_id) || table.queued.contains(task_id)
    }

    /// Why a task stopped early, if it did.
    pub(crate) fn stop_reason(&self, task_id: &TaskId) -> Option<OrchestratorError> {
        let table = self.table();
        table.stopped.iter().rev().find(|(stopped, _)| stopped == task_id).map(|(_, e)| e.clone())
    }

    /// Number of tasks that stopped early because of an error that no retry can help. A task without a
    /// model is not one of them: a person sets the key and resumes it.
    pub(crate) fn stuck(&self) -> usize {
        let is_stuck = |error: &OrchestratorError| match error {
            OrchestratorError::Journal(_)
            | OrchestratorError::Replay(_)
            | OrchestratorError::Panicked { .. }
            | OrchestratorError::Unresponsive { .. } => true,
            OrchestratorError::InboxFull { .. }
            | OrchestratorError::PeerUnavailable { .. }
            | OrchestratorError::PeerRefused { .. }
            | OrchestratorError::NoModel { .. }
            | OrchestratorError::Stopping
            | OrchestratorError::Limit(_)
            | OrchestratorError::Budget(_)
            | OrchestratorError::RaiseRefused { .. }
            | OrchestratorError::BadSchema { .. }
            | OrchestratorError::NotRunning { .. }
            | OrchestratorError::SessionExists { .. }
            | OrchestratorError::Ended { .. }
            | OrchestratorError::NoApproval { .. }
            | OrchestratorError::AlreadyDecided { .. }
            | OrchestratorError::RuleNotSaved { .. }
            | OrchestratorError::NoSuchCall { .. }
            | OrchestratorError::ResultTooLong { .. }
            | OrchestratorError::NotAnAnswer { .. }
            | OrchestratorError::CannotPlan { .. }
            | OrchestratorError::CannotStart { .. }
            | OrchestratorError::BadTool { .. } => false,
        };
        self.table().stopped.iter().filter(|(_, error)| is_stuck(error)).count()
    }

    /// Forgets why a task stopped early: it has ended.
    pub(crate) fn forget_stop(&self, task_id: &TaskId) {
        self.table().stopped.retain(|(stopped, _)| stopped != task_id);
    }

    /// Returns when a task neither runs nor is queued for a slot.
    pub(crate) async fn released(&self, task_id: &TaskId) {
        loop {
            // Subscribes before it checks, so that no change is missed.
            let freed = self.freed.notified();
            let running = self.find(task_id);
            if let Some(running) = running {
                running.released.cancelled().await;
            } else if self.table().queued.contains(task_id) {
                freed.await;
            } else {
                return;
            }
        }
    }

    /// Gives the task a slot. Returns `None` when it has one, and then it checks for new events before
    /// it leaves, or when it is queued for one.
    pub(crate) fn acquire(&self, task_id: &TaskId) -> Option<Arc<RunningTask>> {
        let mut table = self.table();
        if table.running.contains_key(task_id) {
            table.recheck.insert(task_id.clone());
            return None;
        }
        if table.running.len() == TASKS_RUNNING_MAX {
            if !table.queued.contains(task_id) {
                table.queued.push_back(task_id.clone());
            }
            return None;
        }
        table.stopped.retain(|(stopped, _)| stopped != task_id);
        let running = Arc::new(RunningTask::new(None));
        table.running.insert(task_id.clone(), Arc::clone(&running));
        Some(running)
    }

    /// Gives a slot to a new task whose creation is being written. Returns `None` when all slots are taken.
    pub(crate) fn acquire_early(&self, task_id: &TaskId) -> Option<Arc<RunningTask>> {
        let mut table = self.table();
        if table.running.len() >= TASKS_RUNNING_MAX || table.running.contains_key(task_id) {
            return None;
        }
        let running = Arc::new(RunningTask::new(Some(Creation::default())));
        table.running.insert(task_id.clone(), Arc::clone(&running));
        Some(running)
    }

    /// Gives up the slot, unless there are new events. Returns whether it did.
    pub(crate) fn release_if_done(&self, task_id: &TaskId) -> bool {
        let mut table = self.table();
        if table.recheck.remove(task_id) {
            return false;
        }
        table.running.remove(task_id);
        true
    }

    /// Gives up the slot unconditionally and notifies waiting callers. Returns the task that is
    /// next in the queue.
    pub(crate) fn release(&self, task_id: &TaskId, running: &Arc<RunningTask>) -> Option<TaskId> {
        let next = self.remove(task_id, running);
        running.released.cancel();
        self.freed.notify_waiters();
        if running.suspended.load(Ordering::Relaxed) || running.stop_reason.get().is_some() {
            self.suspended.notify_waiters();
        }
        next
    }

    fn remove(&self, task_id: &TaskId, running: &Arc<RunningTask>) -> Option<TaskId> {
        let mut table = self.table();
        if let Some(why) = running.stop_reason.get().cloned() {
            if table.stopped.len() == STOPPED_MAX {
                table.stopped.pop_front();
            }
            table.stopped.push_back((task_id.clone(), why));
        }
        // The slot may belong to a later run of the same task.
        if table.running.get(task_id).is_some_and(|there| Arc::ptr_eq(there, running)) {
            table.recheck.remove(task_id);
            table.running.remove(task_id);
        }
        table.queued.pop_front()
    }
}
