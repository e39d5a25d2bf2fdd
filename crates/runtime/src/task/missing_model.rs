//! Tasks whose model cannot be called from here: the process that had its key or its settings is gone. They wait as
//! in an outage of the model, and go on as soon as another process brings what is missing.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{Purpose, TaskId};

use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::decide::Action;
use crate::task::outage::{AnswerShown, Failure};
use crate::task::step::TaskRun;

/// Code of a wait for a model that cannot be called from here.
pub const NO_MODEL: &str = "no_model";

/// The tasks whose model was missing at their last attempt.
#[derive(Debug, Default)]
pub(crate) struct MissingModels(Mutex<HashSet<TaskId>>);

impl MissingModels {
    fn tasks(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task has ended, or its model can be called.
    pub(crate) fn forget(&self, task_id: &TaskId) {
        self.tasks().remove(task_id);
    }
}

impl TaskRun {
    /// The action, or the wait for the model if the action needs a model that is missing.
    pub(crate) fn unless_model_is_missing(&mut self, action: Action) -> Action {
        let needs_model = matches!(action, Action::AskModel | Action::Compact);
        if !self.deps.model_may_come(&self.state.created)
            || !(needs_model || self.runs_remotely(&action))
            || !self.deps.uses_run_provider(self.state.created.runner.as_ref())
        {
            return action;
        }
        let Err(reason) = self.deps.provider_of(&self.state.created) else {
            self.services.missing_models.forget(&self.state.task_id);
            return action;
        };
        let deps = &self.services.deps;
        let (now, random) = (deps.clock.now(), deps.ids.next());
        let failure = Failure {
            code: NO_MODEL,
            error: reason,
            retry_after: None,
            shown: AnswerShown::Nothing,
        };
        let wait = self.state.outage.wait_after(failure, now, random);
        self.services.missing_models.tasks().insert(self.state.task_id.clone());
        self.wait_for_model(None, &wait, Purpose::Superseded);
        Action::WaitForModel
    }
}

impl Orchestrator {
    /// Goes on with the tasks whose model was missing and can be called now: a process has brought its environment.
    pub async fn retry_missing_models(&self) {
        let waiting: Vec<TaskId> = self.services.missing_models.tasks().iter().cloned().collect();
        for task_id in waiting {
            match self.resume(&task_id).await {
                Ok(()) => self.services.missing_models.forget(&task_id),
                Err(OrchestratorError::NoModel { .. }) => {}
                Err(error) => {
                    tracing::warn!(task.id = %task_id, %error, "a task goes on waiting for its model");
                }
            }
        }
    }
}
