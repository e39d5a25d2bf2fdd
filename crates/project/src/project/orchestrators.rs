//! Orchestrators of a project: one that runs tasks, one that only records changes, one that only reads.

use std::path::Path;
use std::sync::Arc;

use antiphon_core::port::{Agents, Journal, RandomIds};
use antiphon_runtime::{
    Budget, NoSpendLimits, Orchestrator, OrchestratorSettings, RuntimeConfig, RuntimeDeps,
    SpendLimitSource, TaskEnvironment,
};
use antiphon_sqlite::{OpenError, SqliteJournal, SyncPolicy};

use super::Project;
use crate::error::ProjectError;
use crate::machine_clock::MachineClock;
use crate::models::Models;
use crate::project_agents::ProjectAgents;
use crate::settings::UserSettings;
use crate::spend_limits::KeySpendLimits;
use crate::task::environments::ProjectEnvironments;
use crate::task::process_environment::ProcessEnvironment;
use crate::toolset::Toolset;

impl Project {
    /// An orchestrator that runs the project's tasks.
    pub(super) fn owner_orchestrator(
        &self,
        journal: SqliteJournal,
        own: &ProcessEnvironment,
        environments: Arc<ProjectEnvironments>,
    ) -> Orchestrator {
        let TaskEnvironment { models, tools, gate, agents, runners, approvals } =
            (*own.task).clone();
        let settings = own.settings();
        let deps = RuntimeDeps {
            journal: Arc::new(journal),
            prices: Arc::new(settings.prices.clone()),
            models,
            tools,
            gate,
            agents,
            runners,
            clock: Arc::new(MachineClock),
            ids: Arc::new(RandomIds),
            settings: OrchestratorSettings { approvals, ..OrchestratorSettings::default() },
        };
        let budget = self.budget(settings);
        Orchestrator::with_environments(RuntimeConfig { deps, budget }, environments)
    }

    /// An orchestrator that records changes and runs no task.
    pub fn recording_orchestrator(
        &self,
        journal: SqliteJournal,
        models: Models,
        toolset: Toolset,
    ) -> Orchestrator {
        let budget = self.budget(models.settings());
        let deps = deps(Arc::new(journal), models, toolset);
        Orchestrator::record_only(RuntimeConfig { deps, budget })
    }

    /// The same with the agents of the project: it can start and stop them.
    pub fn recording_orchestrator_with(
        &self,
        journal: SqliteJournal,
        models: Models,
        toolset: Toolset,
        project_agents: &ProjectAgents,
    ) -> Orchestrator {
        let budget = self.budget(models.settings());
        let agents: Arc<dyn Agents> = Arc::clone(&project_agents.agents) as _;
        let runners = project_agents.runners.clone();
        let deps = deps(Arc::new(journal), models, toolset);
        let deps = RuntimeDeps { agents: Some(agents), runners, ..deps };
        Orchestrator::record_only(RuntimeConfig { deps, budget })
    }

    /// The same for a journal that is not in its place yet, without budget and agents.
    pub fn recording_orchestrator_at(
        journal: &Path,
        models: Models,
    ) -> Result<Orchestrator, ProjectError> {
        let journal = Arc::new(SqliteJournal::open(journal, SyncPolicy::Full)?);
        Ok(Orchestrator::record_only(deps(journal, models, Toolset::none())))
    }

    /// An orchestrator that only reads, also while another process holds the journal.
    pub fn reader(&self, models: Models) -> Result<Orchestrator, ProjectError> {
        let path = self.journal_path();
        // Its owner migrates and recovers it. Without one, this process does, unless it may only look.
        let journal: Arc<dyn Journal> = match SqliteJournal::try_open(&path, SyncPolicy::Full) {
            Ok(Some(journal)) => Arc::new(journal),
            Ok(None) => Arc::new(SqliteJournal::open_read_only(&path)?),
            Err(error @ OpenError::Unusable { .. }) => {
                Arc::new(SqliteJournal::open_read_only(&path).map_err(|_| error)?)
            }
            Err(error) => return Err(error.into()),
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
        let ceiling = settings.policy.spend_ceiling();
        Budget { total: settings.budget, spend_limits, ceiling }
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
        clock: Arc::new(MachineClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings {
            approvals: toolset.approvals,
            ..OrchestratorSettings::default()
        },
    }
}
