//! The agents of a project and the runners their tasks can run on.

use std::sync::Arc;

use antiphon_agent_files::{AgentCatalog, ChangeDetection, Problem, ProblemKind};
use antiphon_core::port::Runner;
use antiphon_core::{AgentName, visible};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent_files::open_catalog;
use crate::error::ProjectError;
use crate::instruction_files::InstructionFiles;
use crate::project::Project;
use crate::prompt_writer::PromptWriter;
use crate::runners;
use crate::settings::UserSettings;
use crate::toolset::{PermissionOverrides, Toolset};

/// Removed agents that are not processed yet. When the queue is full, further names are dropped.
const REMOVED_MAX: usize = 1024;

/// The agents of a project and the runners their tasks can run on. Follows the agents' files until
/// [`ProjectAgents::shutdown`].
pub struct ProjectAgents {
    /// Definitions of the project's agents and of the user's own.
    pub agents: Arc<AgentCatalog>,
    /// Writes their system prompts.
    pub prompts: Arc<PromptWriter>,
    /// The runners beside the local one.
    pub runners: Vec<Arc<dyn Runner>>,
    /// Names of agents whose definitions were removed, as it happens.
    pub removed: mpsc::Receiver<AgentName>,
    stop: CancellationToken,
    watcher: JoinSet<()>,
}

impl ProjectAgents {
    /// Reads the agents of a project and the user's own, and sets up the runners.
    pub fn of(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        toolset: &Toolset,
        rules: &InstructionFiles,
    ) -> Result<Self, ProjectError> {
        let prompts = PromptWriter::new(project, settings, overrides, toolset.approvals, rules);
        let writer = Arc::clone(&prompts);
        let system_prompt =
            move |source: antiphon_core::port::PromptSource<'_>| writer.of_agent(source);
        let agents = Arc::new(open_catalog(project, settings, system_prompt));
        // The review of the project lists what is not trusted.
        let is_invalid = |problem: &Problem| problem.kind == ProblemKind::Invalid;
        for problem in agents.problems().into_iter().filter(is_invalid) {
            settings.environment.warnings.report(&visible(&problem.to_string()));
        }
        let runners = runners::all(project, settings, overrides, toolset, &*agents)?;
        let stop = CancellationToken::new();
        let mut watcher = JoinSet::new();
        let (sender, removed) = mpsc::channel(REMOVED_MAX);
        let catalog = Arc::clone(&agents);
        watcher.spawn(catalog.watch(ChangeDetection::Events, stop.clone(), move |changes| {
            for problem in &changes.problems {
                tracing::warn!("{}", visible(&problem.to_string()));
            }
            for name in changes.removed.iter().filter_map(|name| AgentName::parse(name).ok()) {
                // The receiver may be gone: then removals are not needed.
                let _ = sender.try_send(name);
            }
        }));
        Ok(Self { agents, prompts, runners, removed, stop, watcher })
    }

    /// The same with the rules of the project and the user.
    pub fn with_project_rules(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        toolset: &Toolset,
    ) -> Result<Self, ProjectError> {
        Self::of(project, settings, overrides, toolset, &project.rules(settings))
    }

    /// Stops following the agents' files.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while self.watcher.join_next().await.is_some() {}
    }
}
