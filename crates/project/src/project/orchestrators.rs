//! Orchestrators of a project: one that runs tasks, one that only records changes, one that only reads.

use std::path::Path;
use std::sync::Arc;

use antiphon_core::port::{Agents, Journal, RandomIds, SystemClock};
use antiphon_runtime::{
    Budget, NoSpendLimits, Orchestrator, RuntimeConfig, RuntimeDeps, Settings, SpendLimitSource,
};
use antiphon_sqlite::{SqliteJournal, Sync};

use super::Project;
use crate::error::ProjectError;
use crate::models::Models;
use crate::project_agents::ProjectAgents;
use crate::settings::UserSettings;
use crate::spend_limits::KeySpendLimits;
use crate::toolset::Toolset;

impl Project {
    /// An orchestrator that runs the project's tasks.
    pub fn orchestrator(
        &self,
        models: Models,
        toolset: Toolset,
        project_agents: &ProjectAgents,
    ) -> Result<Orchestrator, ProjectError> {
        let budget = self.budget(models.settings());
        let world = self.deps_with_agents(models, toolset, project_agents)?;
        Ok(Orchestrator::new(RuntimeConfig { deps: world, budget }))
    }

    /// An orchestrator that records changes and runs no task.
    pub fn recording_orchestrator(
        &self,
        models: Models,
        toolset: Toolset,
    ) -> Result<Orchestrator, ProjectError> {
        let (journal, budget) = (Arc::new(self.journal()?), self.budget(models.settings()));
        let world = deps(journal, models, toolset);
        Ok(Orchestrator::record_only(RuntimeConfig { deps: world, budget }))
    }

    /// The same with the agents of the project: it can start and stop them.
    pub fn recording_orchestrator_with(
        &self,
        models: Models,
        toolset: Toolset,
        project_agents: &ProjectAgents,
    ) -> Result<Orchestrator, ProjectError> {
        let budget = self.budget(models.settings());
        let world = self.deps_with_agents(models, toolset, project_agents)?;
        Ok(Orchestrator::record_only(RuntimeConfig { deps: world, budget }))
    }

    /// The same for a journal that is not in its place yet, without budget and agents.
    pub fn recording_orchestrator_at(
        journal: &Path,
        models: Models,
    ) -> Result<Orchestrator, ProjectError> {
        let journal = Arc::new(SqliteJournal::open(journal, Sync::Full)?);
        Ok(Orchestrator::record_only(deps(journal, models, Toolset::none())))
    }

    /// An orchestrator that only reads, also while another process holds the journal.
    pub fn reader(&self, models: Models) -> Result<Orchestrator, ProjectError> {
        let journal: Arc<dyn Journal> = match self.journal() {
            Ok(journal) => Arc::new(journal),
            Err(ProjectError::Unavailable(_)) => {
                Arc::new(SqliteJournal::open_read_only(&self.journal_path())?)
            }
            Err(error) => return Err(error),
        };
        let budget = self.budget(models.settings());
        let world = deps(journal, models, Toolset::none());
        Ok(Orchestrator::record_only(RuntimeConfig { deps: world, budget }))
    }

    /// Spend limits of the project and of its keys.
    fn budget(&self, settings: &UserSettings) -> Budget {
        let spend_limits: Arc<dyn SpendLimitSource> = match self.keys() {
            Ok(ring) => Arc::new(KeySpendLimits(ring)),
            // The server and `antiphon keys` report what is wrong with the file of keys.
            Err(_) => Arc::new(NoSpendLimits),
        };
        Budget { total: settings.budget, spend_limits }
    }

    fn deps_with_agents(
        &self,
        models: Models,
        toolset: Toolset,
        project_agents: &ProjectAgents,
    ) -> Result<RuntimeDeps, ProjectError> {
        let journal = Arc::new(self.journal()?);
        let agents: Arc<dyn Agents> = Arc::clone(&project_agents.agents) as _;
        let runners = project_agents.runners.clone();
        Ok(RuntimeDeps { agents: Some(agents), runners, ..deps(journal, models, toolset) })
    }
}

fn deps(journal: Arc<dyn Journal>, models: Models, toolset: Toolset) -> RuntimeDeps {
    RuntimeDeps {
        journal,
        prices: Arc::new(models.settings().prices.clone()),
        models: Arc::new(models),
        tools: toolset.tools,
        gate: toolset.gate,
        agents: None,
        runners: Vec::new(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: Settings { approvals: toolset.approvals, ..Settings::default() },
    }
}
