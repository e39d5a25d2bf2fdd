//! The models of a task whose process is gone, with the variables of the owner. What is missing is named, with what
//! to do: another process can bring it.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_core::{ModelRef, Provider, RawJson};
use antiphon_runtime::{BreakerState, Models as RuntimeModels, TaskEnvironment};

use crate::models::Models;
use crate::settings::Key;

/// The same environment for a task whose process is gone.
pub(crate) fn without_process(task: &TaskEnvironment, models: &Arc<Models>) -> TaskEnvironment {
    TaskEnvironment { models: Arc::new(OwnersModels(Arc::clone(models))), ..task.clone() }
}

/// The models that the owner reaches.
struct OwnersModels(Arc<Models>);

impl OwnersModels {
    /// The first of these models whose key the owner lacks, and the variable that holds it.
    fn missing_key<'a>(
        &'a self,
        mut models: impl Iterator<Item = &'a ModelRef>,
    ) -> Option<(&'a str, &'a str)> {
        let providers = &self.0.settings().providers;
        models.find_map(|model| match &providers.get(model.provider())?.key {
            Key::Missing { variable } => Some((model.provider(), variable.as_str())),
            Key::Set { .. } | Key::NotNeeded => None,
        })
    }
}

impl RuntimeModels for OwnersModels {
    fn provider(
        &self,
        model: &ModelRef,
        fallbacks: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let missing = || self.missing_key([model].into_iter().chain(fallbacks));
        let found = RuntimeModels::provider(&*self.0, model, fallbacks, route);
        found.map_err(|error| match missing() {
            Some((provider, variable)) => format!(
                "`{provider}` needs {variable}, which process {} lacks, and the process that started the task is \
                 gone: set it and continue the task with `antiphon run --resume TASK`",
                std::process::id()
            ),
            None => error,
        })
    }

    fn may_come(&self, model: &ModelRef, fallbacks: &[ModelRef]) -> bool {
        let settings = self.0.settings();
        let is_allowed = |model| settings.policy.check_model(model, settings).is_ok();
        [model].into_iter().chain(fallbacks).all(is_allowed)
    }

    fn default_model(&self) -> Option<ModelRef> {
        self.0.default_model()
    }

    fn window_tokens(&self, model: &ModelRef) -> Option<u64> {
        self.0.window_tokens(model)
    }

    fn breakers(&self) -> BTreeMap<String, BreakerState> {
        self.0.breakers()
    }
}
