//! The answer that a task is receiving, as far as it has come: a watcher that joins in the middle of it gets its
//! beginning first.

use std::sync::Arc;

use antiphon_core::{StreamEvent, TaskId};

use crate::watch::delta::{Delta, DeltaEvent};
use crate::watch::delta_watchers::DeltaWatchers;

/// An answer in progress. Watchers that join later get no beginning once this is dropped.
pub(crate) struct LiveAnswer {
    watchers: Arc<DeltaWatchers>,
    task_id: TaskId,
}

impl LiveAnswer {
    /// Keeps the deltas of the answer that the task receives next. `root` is the root of its tree.
    pub(crate) fn begin(watchers: &Arc<DeltaWatchers>, task_id: &TaskId, root: &TaskId) -> Self {
        watchers.begin_answer(task_id, root);
        Self { watchers: Arc::clone(watchers), task_id: task_id.clone() }
    }
}

impl Drop for LiveAnswer {
    fn drop(&mut self) {
        self.watchers.end_answer(&self.task_id);
    }
}

/// The deltas of an answer until now. Neighbors of one kind are one delta.
#[derive(Debug)]
pub(crate) struct ReceivedDeltas {
    pub(crate) root: TaskId,
    deltas: Vec<Delta>,
}

impl ReceivedDeltas {
    pub(crate) fn new(root: TaskId) -> Self {
        Self { root, deltas: Vec::new() }
    }

    /// Adds a delta of the answer.
    pub(crate) fn add(&mut self, delta: &Delta) {
        if !self.deltas.last_mut().is_some_and(|last| extend(last, delta)) {
            self.deltas.push(delta.clone());
        }
    }

    /// The deltas, in order.
    pub(crate) fn deltas(&self) -> &[Delta] {
        &self.deltas
    }
}

/// Appends the next delta to the last one. False when it is of another kind.
fn extend(last: &mut Delta, next: &Delta) -> bool {
    let (DeltaEvent::Answer(last), DeltaEvent::Answer(next)) = (&mut last.event, &next.event)
    else {
        return false;
    };
    match (last, next) {
        (StreamEvent::TextDelta { delta: text }, StreamEvent::TextDelta { delta })
        | (StreamEvent::ThinkingDelta { delta: text }, StreamEvent::ThinkingDelta { delta }) => {
            text.push_str(delta);
            true
        }
        (
            StreamEvent::ToolCallDelta { id: call, delta: text },
            StreamEvent::ToolCallDelta { id, delta },
        ) if call == id => {
            text.push_str(delta);
            true
        }
        (_, _) => false,
    }
}
