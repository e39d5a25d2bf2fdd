//! Which model answers a task that names none.

use antiphon_project::agent_files::{find_entry, read_catalog};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;

use super::{Order, Run};
use crate::failure::Failure;
use crate::first_run;

impl Run {
    /// Makes sure that a task which names no model has one. Returns the environment to go on with, if it changed.
    pub(super) async fn choose_model(
        &self,
        environment: &Environment,
        project: &Project,
        settings: &UserSettings,
        order: Option<&Order>,
    ) -> Result<Option<Environment>, Failure> {
        let is_named = self.model.is_some() || self.resume.is_some() || self.session.is_some();
        let is_named = is_named || order.is_some_and(|order| order.model.is_some());
        if is_named || self.script.is_some() || self.replay.is_some() {
            return Ok(None);
        }
        // An agent may have a model of its own, or none to call, as a program in a terminal.
        if let Some(name) = self.agent.as_ref().or_else(|| order?.agent.as_ref()) {
            let agent = find_entry(&read_catalog(project, settings), name)?.definition;
            if agent.model.is_some() || !agent.runtimes.is_empty() {
                return Ok(None);
            }
        }
        first_run::choose_model(environment, settings).await
    }
}
