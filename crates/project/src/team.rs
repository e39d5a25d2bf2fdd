//! The agents of a project and the runners their tasks can run on.

use std::ffi::OsString;
use std::sync::Arc;

use antiphon_agent_files::{AgentCatalog, ChangeDetection};
use antiphon_core::port::{Agents, Runner};
use antiphon_core::{AgentDefinition, AgentName, visible};
use antiphon_permissions::{Mode, Remembered, RuleEntry};
use antiphon_remote::{Peers, RemoteRunner, RetryPolicy};
use antiphon_sandbox::Network;
use antiphon_sandboxed::{SandboxRunner, WORKERS_DEFAULT, WorkerCommand};
use antiphon_terminal::{GuardCommand, TerminalRunner, TerminalSettings};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent_files::folders;
use crate::error::ProjectError;
use crate::project::Project;
use crate::prompt::{self, Rules};
use crate::settings::UserSettings;
use crate::task::task_worker::{ApprovalMode, CallableAgent, TASK_WORKER, WorkerSettings};
use crate::toolset::{self, PermissionOverrides, Toolset};

/// First argument of the process that guards a program in a terminal.
pub const TERMINAL_GUARD: &str = "__terminal_guard";

/// Folder of a project's terminals, in its `.antiphon`.
pub const TERMINALS: &str = "terminals";

/// Removed agents that are not processed yet. When the queue is full, further names are dropped.
const REMOVED_MAX: usize = 1024;

/// The agents of a project and the runners their tasks can run on. Follows the agents' files until
/// [`Team::shutdown`].
pub struct Team {
    /// Definitions of the project's agents and of the user's own.
    pub agents: Arc<AgentCatalog>,
    /// The runners beside the local one.
    pub runners: Vec<Arc<dyn Runner>>,
    /// Names of agents whose definitions were removed, as it happens.
    pub removed: mpsc::Receiver<AgentName>,
    stop: CancellationToken,
    watcher: JoinSet<()>,
}

impl Team {
    /// Reads the agents of a project and the user's own, and sets up the runners.
    pub fn of(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        toolset: &Toolset,
        rules: &Rules,
    ) -> Result<Self, ProjectError> {
        let (root, rules) = (project.root().to_owned(), rules.clone());
        let system_prompt = move |source: antiphon_core::port::PromptSource<'_>| {
            prompt::agent_prompt(source, &root, &rules)
        };
        let agents = Arc::new(AgentCatalog::open(folders(project, settings).into(), system_prompt));
        for problem in agents.problems() {
            settings.environment.warnings.report(&visible(&problem.to_string()));
        }
        let mut runners: Vec<Arc<dyn Runner>> = Vec::new();
        if let Some(sandbox) = sandbox(project, settings, overrides, toolset, &*agents) {
            runners.push(Arc::new(sandbox));
        }
        runners.push(Arc::new(loopback(settings)?));
        runners.extend(terminals(project, settings)?.map(|terminals| Arc::new(terminals) as _));
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
        Ok(Self { agents, runners, removed, stop, watcher })
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

/// The runner `sandbox`; `None` in mode `full` and where no sandbox can be set up.
fn sandbox(
    project: &Project,
    settings: &UserSettings,
    overrides: &PermissionOverrides,
    toolset: &Toolset,
    agents: &dyn Agents,
) -> Option<SandboxRunner> {
    let mut permissions = toolset::permissions(settings, overrides);
    let mode = permissions.mode;
    if mode == Mode::Full {
        return None;
    }
    let remembered = Remembered::open(settings.remembered_path(), project.root()).ok();
    let remembered = remembered.map(|remembered| remembered.rules()).unwrap_or_default();
    permissions.allow.extend(remembered.iter().map(|rule| RuleEntry::from(rule.0.as_str())));
    if toolset::policy(project, settings, mode, overrides.network).network == Network::Off {
        let reason = Some("tasks on the runner `sandbox` reach no host".to_owned());
        permissions.deny.push(RuleEntry { reason, ..RuleEntry::from("network") });
    }
    let callable = |agent: &Arc<AgentDefinition>| CallableAgent {
        name: agent.name.clone(),
        description: agent.description.clone(),
    };
    let worker_settings = WorkerSettings {
        root: project.root().to_owned(),
        permissions,
        approvals: ApprovalMode::from(toolset.approvals),
        agents: agents.list().iter().map(callable).collect(),
        prices: settings.prices.clone(),
        windows: settings.windows().clone(),
    };
    let environment = toolset::command_environment(settings).ok()?;
    let own = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let mut policy = toolset::policy(project, settings, mode, overrides.network);
    policy.tmp = project.folder().join("workers");
    let runner = antiphon_sandboxed::Settings {
        worker: WorkerCommand { program: "/proc/self/exe".into(), args: vec![TASK_WORKER.into()] },
        policy,
        limits: antiphon_sandboxed::Limits::default(),
        environment: environment.variables().map(own).collect(),
        worker_settings: serde_json::to_value(worker_settings).ok()?,
        workers_max: WORKERS_DEFAULT,
    };
    match SandboxRunner::new(runner) {
        Ok(runner) => Some(runner),
        Err(error) => {
            tracing::info!(%error, "there is no runner `sandbox` here");
            None
        }
    }
}

/// The runner `terminal` for the configured programs; `None` without any.
fn terminals(
    project: &Project,
    settings: &UserSettings,
) -> Result<Option<TerminalRunner>, ProjectError> {
    if settings.terminals.is_empty() || !project.folder().is_dir() {
        return Ok(None);
    }
    let environment = toolset::command_environment(settings).map_err(ProjectError::InvalidInput)?;
    // A terminal sets its own TERM, and shows output page by page itself.
    let own = |(name, _): &(&OsString, &OsString)| *name != "TERM" && *name != "PAGER";
    let pair = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let terminals = TerminalSettings {
        profiles: settings.terminals.clone(),
        folder: project.folder().join(TERMINALS),
        root: project.root().to_owned(),
        environment: environment.variables().filter(own).map(pair).collect(),
        guard: GuardCommand { program: "/proc/self/exe".into(), args: vec![TERMINAL_GUARD.into()] },
    };
    let refuse =
        |error: antiphon_terminal::SettingsError| ProjectError::InvalidInput(error.to_string());
    TerminalRunner::new(terminals).map(Some).map_err(refuse)
}

/// The runner `loopback` for the configured peers.
fn loopback(settings: &UserSettings) -> Result<RemoteRunner, ProjectError> {
    let mut peers = Peers::default();
    for (name, peer) in &settings.peers {
        let token = match peer.token(name, &settings.environment) {
            Ok(token) => token,
            // The other peers still work.
            Err(error) => {
                settings.environment.warnings.report(&format!("{error}; it cannot be reached"));
                continue;
            }
        };
        peers
            .add(name, &peer.url, &token)
            .map_err(|error| ProjectError::InvalidInput(format!("[peers.{name}]: {error}")))?;
    }
    Ok(RemoteRunner::new(peers, RetryPolicy::default()))
}
