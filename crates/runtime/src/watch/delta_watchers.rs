//! The watchers of live deltas.
//!
//! A watcher of one task is woken by that task alone, and a delta that is not watched is only kept until its answer is
//! complete. A watcher that joins in the middle of an answer gets the beginning first. No publisher waits for a watcher:
//! a slow one misses deltas and receives their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::watch::delta::{Delta, DeltaEvent};
use crate::watch::live_answer::ReceivedDeltas;
use crate::watch::serialized::SerializedDelta;

/// Number of deltas that a slow watcher may be behind before it misses some.
const KEPT_MAX: usize = 4096;

/// Number of watched tasks at which those without watchers are dropped.
const TASKS_CLEANUP_AT: usize = 1024;

/// What a watcher gets.
#[derive(Debug, Clone)]
pub enum WatchedDelta {
    /// The next delta.
    Delta(Arc<SerializedDelta>),
    /// So many deltas were missed here. The journal has the whole messages.
    Missed(u64),
}

/// Receives live deltas, in order.
#[derive(Debug)]
pub struct DeltaWatcher(mpsc::Receiver<WatchedDelta>);

impl DeltaWatcher {
    /// Waits for the next delta; `None` when the orchestrator has ended. Cancel safe.
    pub async fn recv(&mut self) -> Option<WatchedDelta> {
        self.0.recv().await
    }

    /// The next delta, if it is there.
    pub fn try_recv(&mut self) -> Option<WatchedDelta> {
        self.0.try_recv().ok()
    }
}

/// All watchers.
#[derive(Debug)]
pub(crate) struct DeltaWatchers(Mutex<Watchers>);

#[derive(Debug)]
struct Watchers {
    all: Vec<Watcher>,
    tasks: HashMap<TaskId, Vec<Watcher>>,
    /// The answers in progress.
    answers: HashMap<TaskId, ReceivedDeltas>,
    /// Number of watched tasks at which unwatched ones are dropped.
    cleanup_at: usize,
}

#[derive(Debug)]
struct Watcher {
    sender: mpsc::Sender<WatchedDelta>,
    missed: u64,
}

impl DeltaWatchers {
    pub(crate) fn new() -> Self {
        let (all, tasks, answers) = (Vec::new(), HashMap::new(), HashMap::new());
        Self(Mutex::new(Watchers { all, tasks, answers, cleanup_at: TASKS_CLEANUP_AT }))
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, the deltas of this task's answer are kept.
    pub(crate) fn begin_answer(&self, task_id: &TaskId, root: &TaskId) {
        self.watchers().answers.insert(task_id.clone(), ReceivedDeltas::new(root.clone()));
    }

    /// The answer of this task is complete, or broke off.
    pub(crate) fn end_answer(&self, task_id: &TaskId) {
        self.watchers().answers.remove(task_id);
    }

    /// Deltas of all tasks.
    pub(crate) fn watch_all(&self) -> DeltaWatcher {
        let (watcher, deltas) = Watcher::new();
        self.watchers().all.push(watcher);
        deltas
    }

    /// Deltas of all tasks, after the beginnings of the answers that tasks of this tree are receiving.
    pub(crate) fn watch_tree(&self, root: &TaskId) -> DeltaWatcher {
        let (mut watcher, deltas) = Watcher::new();
        let mut watchers = self.watchers();
        watchers.answers.values().filter(|it| it.root == *root).for_each(|it| watcher.replay(it));
        watchers.all.push(watcher);
        deltas
    }

    /// Deltas of one task, after the beginning of the answer that it is receiving.
    pub(crate) fn watch_task(&self, task_id: &TaskId) -> DeltaWatcher {
        let (mut watcher, deltas) = Watcher::new();
        let mut watchers = self.watchers();
        if let Some(answer) = watchers.answers.get(task_id) {
            watcher.replay(answer);
        }
        if watchers.tasks.len() >= watchers.cleanup_at {
            watchers.tasks.retain(|_, task| task.iter().any(|one| !one.sender.is_closed()));
            watchers.cleanup_at = TASKS_CLEANUP_AT.max(2 * watchers.tasks.len());
        }
        watchers.tasks.entry(task_id.clone()).or_default().push(watcher);
        deltas
    }

    /// Publishes a delta.
    pub(crate) fn publish(&self, delta: Delta) {
        let mut watchers = self.watchers();
        let Watchers { all, tasks, answers, .. } = &mut *watchers;
        if let DeltaEvent::Answer(_) = &delta.event
            && let Some(answer) = answers.get_mut(&delta.task_id)
        {
            answer.add(&delta);
        }
        let task = tasks.get_mut(&delta.task_id);
        if all.is_empty() && task.is_none() {
            return;
        }
        let delta = Arc::new(SerializedDelta::new(delta));
        all.retain_mut(|watcher| watcher.send(&delta));
        if let Some(task) = task {
            task.retain_mut(|watcher| watcher.send(&delta));
            if task.is_empty() {
                tasks.remove(&delta.value().task_id);
            }
        }
    }
}

impl Watcher {
    fn new() -> (Self, DeltaWatcher) {
        let (sender, deltas) = mpsc::channel(KEPT_MAX);
        (Self { sender, missed: 0 }, DeltaWatcher(deltas))
    }

    /// Sends what exists of an answer.
    fn replay(&mut self, answer: &ReceivedDeltas) {
        for delta in answer.deltas() {
            self.send(&Arc::new(SerializedDelta::new(delta.clone())));
        }
    }

    /// Sends a delta, after the number of those that were missed before it. Returns false when the
    /// watcher is gone.
    fn send(&mut self, delta: &Arc<SerializedDelta>) -> bool {
        if self.missed > 0 {
            match self.sender.try_send(WatchedDelta::Missed(self.missed)) {
                Ok(()) => self.missed = 0,
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Closed(_)) => return false,
            }
        }
        match self.sender.try_send(WatchedDelta::Delta(Arc::clone(delta))) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Seq, StreamEvent};

    use super::*;
    use crate::watch::live_answer::LiveAnswer;

    fn delta(task_id: &TaskId, text: &str) -> Delta {
        let event = StreamEvent::TextDelta { delta: text.to_owned() };
        Delta::new(task_id.clone(), 0, Seq(1), DeltaEvent::Answer(event))
    }

    fn ids() -> [TaskId; 2] {
        [1, 2].map(|number: u128| TaskId::from(uuid::Uuid::from_u128(number)))
    }

    #[test]
    fn watchers_of_a_task_share_its_deltas_and_get_no_others() {
        let (watchers, [one, other]) = (DeltaWatchers::new(), ids());
        let [mut first, mut second] = [watchers.watch_task(&one), watchers.watch_task(&one)];
        let (mut elsewhere, mut all) = (watchers.watch_task(&other), watchers.watch_all());
        watchers.publish(delta(&one, "a"));
        let mut received = || [&mut first, &mut second, &mut all].map(DeltaWatcher::try_recv);
        let [
            Some(WatchedDelta::Delta(first)),
            Some(WatchedDelta::Delta(second)),
            Some(WatchedDelta::Delta(third)),
        ] = received()
        else {
            panic!("each gets it")
        };
        assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &third));
        assert!(elsewhere.try_recv().is_none());
        assert!(received().iter().all(Option::is_none));
    }

    #[test]
    fn a_slow_watcher_gets_the_number_it_missed_where_they_are_missing() {
        let (watchers, [one, _]) = (DeltaWatchers::new(), ids());
        let mut slow = watchers.watch_task(&one);
        for _ in 0..KEPT_MAX + 3 {
            watchers.publish(delta(&one, "a"));
        }
        for _ in 0..KEPT_MAX {
            assert!(matches!(slow.try_recv(), Some(WatchedDelta::Delta(_))));
        }
        assert!(slow.try_recv().is_none());
        watchers.publish(delta(&one, "b"));
        assert!(matches!(slow.try_recv(), Some(WatchedDelta::Missed(3))));
        assert!(matches!(slow.try_recv(), Some(WatchedDelta::Delta(_))));
    }

    #[test]
    fn a_watcher_that_joins_in_the_middle_of_an_answer_gets_its_beginning() {
        let (watchers, [one, other]) = (Arc::new(DeltaWatchers::new()), ids());
        let answer = LiveAnswer::begin(&watchers, &one, &other);
        for text in ["a", "b", "c"] {
            watchers.publish(delta(&one, text));
        }
        let text = |watcher: &mut DeltaWatcher| match watcher.try_recv() {
            Some(WatchedDelta::Delta(delta)) => Some(delta.value().event.clone()),
            Some(WatchedDelta::Missed(_)) | None => None,
        };
        let piece = |text: &str| delta(&one, text).event;
        let [mut of_task, mut of_tree] = [watchers.watch_task(&one), watchers.watch_tree(&other)];
        let [mut of_all, mut elsewhere] = [watchers.watch_all(), watchers.watch_tree(&one)];
        watchers.publish(delta(&one, "d"));
        for joined in [&mut of_task, &mut of_tree] {
            let received = [text(joined), text(joined), text(joined)];
            assert_eq!(received, [Some(piece("abc")), Some(piece("d")), None]);
        }
        for unrelated in [&mut of_all, &mut elsewhere] {
            assert_eq!([text(unrelated), text(unrelated)], [Some(piece("d")), None]);
        }
        drop(answer);
        assert_eq!(text(&mut watchers.watch_task(&one)), None, "the journal has it");
        assert!(watchers.watchers().answers.is_empty());
    }

    #[test]
    fn watchers_that_are_gone_are_forgotten() {
        let (watchers, [one, _]) = (DeltaWatchers::new(), ids());
        drop((watchers.watch_task(&one), watchers.watch_all()));
        watchers.publish(delta(&one, "a"));
        assert!(watchers.watchers().all.is_empty() && watchers.watchers().tasks.is_empty());
        for number in 0..3 * TASKS_CLEANUP_AT as u128 {
            drop(watchers.watch_task(&TaskId::from(uuid::Uuid::from_u128(number))));
        }
        assert!(watchers.watchers().tasks.len() <= TASKS_CLEANUP_AT);
    }
}
