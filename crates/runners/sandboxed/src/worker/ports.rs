//! The ports of a worker.

use std::sync::Arc;

use antiphon_core::port::{Cancel, Journal, SingleTaskJournal};
use antiphon_core::{Provider, TaskId};
use serde_json::Value;

use super::journal::RemoteJournal;
use super::link::{Hello, Link};
use super::provider::RemoteProvider;

/// The ports of a worker. The ordinary loop runs on them; only the tools are in the worker, the
/// journal and the model are served by the runner.
pub struct WorkerPorts {
    /// Id of the task to work on.
    pub task_id: TaskId,
    /// [`SandboxRunnerSettings::worker_settings`](crate::SandboxRunnerSettings::worker_settings).
    pub settings: Value,
    /// The journal, limited to the task. A worker appends events of its own task, except decisions
    /// of users or the orchestrator; it reads its task and the conversation before it; it lists its
    /// task and its tree. The other lists of a [`SingleTaskJournal`] are unavailable.
    pub journal: Arc<dyn Journal>,
    /// The model of the task.
    pub provider: Arc<dyn Provider>,
    /// Fires when the task is canceled: end it, record that, return.
    pub cancel: Cancel,
    /// Fires when a person interrupts the turn: end the calls, record that, return.
    pub interrupt: Cancel,
    /// Fires when the process shuts down: record the state, return.
    pub rest: Cancel,
}

impl WorkerPorts {
    pub(super) fn new(hello: Hello, link: &Arc<Link>) -> Self {
        let Hello { task_id, settings } = hello;
        Self {
            journal: Arc::new(SingleTaskJournal::new(Arc::new(RemoteJournal::new(
                task_id.clone(),
                Arc::clone(link),
            )))),
            provider: Arc::new(RemoteProvider::new(Arc::clone(link))),
            cancel: Cancel::when(Arc::clone(link).canceled()),
            interrupt: Cancel::when(Arc::clone(link).interrupted()),
            rest: Cancel::when(Arc::clone(link).resting()),
            task_id,
            settings,
        }
    }
}
