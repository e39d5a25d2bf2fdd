//! The text that an agent in a runner is writing, as watchers of the task see it.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{AnswerChange, AnswerDisplay};
use antiphon_core::{Seq, StreamEvent, TaskId};

use crate::services::Services;
use crate::watch::delta::{AnswerDelta, Delta, DeltaEvent};
use crate::watch::live_answer::LiveAnswer;

/// Code of a text that the agent began anew.
const BEGUN_ANEW: &str = "superseded";

/// Publishes the text of one task as live deltas.
pub(crate) struct LiveDisplay {
    services: Arc<Services>,
    task_id: TaskId,
    root: TaskId,
    /// Complete answers of the task before.
    turn: u32,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    bytes: usize,
    /// Keeps the text for watchers that join later.
    live: Option<LiveAnswer>,
}

impl LiveDisplay {
    pub(crate) fn new(
        services: &Arc<Services>,
        task_id: &TaskId,
        root: &TaskId,
        turn: u32,
    ) -> Self {
        let (task_id, root) = (task_id.clone(), root.clone());
        Self { services: Arc::clone(services), task_id, root, turn, shown: Mutex::default() }
    }
}

impl AnswerDisplay for LiveDisplay {
    fn show(&self, after: Seq, change: AnswerChange<'_>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let deltas = &self.services.deltas;
        let event = match change {
            AnswerChange::More(text) => {
                let begin = || LiveAnswer::begin(deltas, &self.task_id, &self.root);
                shown.live.get_or_insert_with(begin);
                DeltaEvent::Answer(StreamEvent::TextDelta { delta: text.to_owned() })
            }
            AnswerChange::Superseded => {
                let error = "the agent begins its text anew".to_owned();
                let code = BEGUN_ANEW.to_owned();
                *shown = Shown::default();
                DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, error })
            }
            AnswerChange::Complete => {
                *shown = Shown::default();
                return;
            }
        };
        let delta = Delta::new(self.task_id.clone(), self.turn, after, event);
        deltas.publish(delta.after_text(shown.bytes));
        if let AnswerChange::More(text) = change {
            shown.bytes += text.len();
        }
    }
}
