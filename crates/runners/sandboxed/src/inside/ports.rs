//! What a worker is given to work with.

use std::sync::Arc;

use antiphon_core::port::{Cancel, Journal, TaskOnlyJournal};
use antiphon_core::{Provider, TaskId};
use serde_json::Value;

use super::journal::FarJournal;
use super::link::{Hello, Link};
use super::provider::FarProvider;

/// What a worker is given to work with. The ordinary loop runs on it; only its tools are here, the
/// journal and the model are where the runner is.
pub struct WorkerPorts {
    /// What to work on.
    pub task_id: TaskId,
    /// [`Settings::worker_settings`](crate::Settings::worker_settings).
    pub settings: Value,
    /// The journal as far as the task is concerned. Only its own events are appended, and nothing
    /// that a person or the orchestrator decides; its own events and the history before it are read.
    /// Its lists are those of a [`TaskOnlyJournal`].
    pub journal: Arc<dyn Journal>,
    /// Who answers for its model.
    pub provider: Arc<dyn Provider>,
    /// Fires when the task is canceled: end it, write that down, return.
    pub cancel: Cancel,
    /// Fires when everything comes to rest: write down what is known, return.
    pub rest: Cancel,
}

impl WorkerPorts {
    pub(super) fn new(hello: Hello, link: &Arc<Link>) -> Self {
        let Hello { task_id, settings } = hello;
        Self {
            journal: Arc::new(TaskOnlyJournal::new(Arc::new(FarJournal::new(
                task_id.clone(),
                Arc::clone(link),
            )))),
            provider: Arc::new(FarProvider::new(Arc::clone(link))),
            cancel: Cancel::when(Arc::clone(link).canceled()),
            rest: Cancel::when(Arc::clone(link).resting()),
            task_id,
            settings,
        }
    }
}
