//! The runners of a project beside the local one: a sandbox, peers, remote agents, and programs in terminals.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use antiphon_a2a::{A2aRunner, RemoteAgents};
use antiphon_core::AgentDefinition;
use antiphon_core::port::{Agents, Runner};
use antiphon_permissions::{PermissionMode, Remembered, RuleEntry};
use antiphon_remote::{Peers, RemoteRunner, RetryPolicy};
use antiphon_sandbox::Network;
use antiphon_sandboxed::{SandboxRunner, WORKERS_DEFAULT, WorkerCommand};
use antiphon_terminal::{GuardCommand, TerminalRunner, TerminalSettings};

use crate::error::ProjectError;
use crate::project::Project;
use crate::settings::UserSettings;
use crate::task::task_worker::{ApprovalMode, CallableAgent, TASK_WORKER, WorkerSettings};
use crate::toolset::{self, PermissionOverrides, Toolset};

/// First argument of the process that guards a program in a terminal.
pub const TERMINAL_GUARD: &str = "__terminal_guard";

/// Folder of a project's terminals, in its state folder.
pub const TERMINALS: &str = "terminals";

/// Where the shell of a worker keeps what is known about its calls, below the worker's `/tmp`.
const CALL_RECORDS: &str = "results/.calls";

/// How a broken connection to a peer is made again. After about three seconds the task waits, and says so.
const RECONNECT: RetryPolicy = RetryPolicy {
    attempts_max: 5,
    first_wait: Duration::from_millis(100),
    wait_max: Duration::from_secs(1),
};

/// The runners that can be set up here.
pub(crate) fn all(
    project: &Project,
    settings: &UserSettings,
    overrides: &PermissionOverrides,
    toolset: &Toolset,
    agents: &dyn Agents,
) -> Result<Vec<Arc<dyn Runner>>, ProjectError> {
    let mut runners: Vec<Arc<dyn Runner>> = Vec::new();
    if let Some(sandbox) = sandbox(project, settings, overrides, toolset, agents) {
        runners.push(Arc::new(sandbox));
    }
    runners.push(Arc::new(loopback(settings)?));
    runners.push(Arc::new(a2a(settings)?));
    runners.extend(terminals(project, settings)?.map(|terminals| Arc::new(terminals) as _));
    Ok(runners)
}

/// The runner `sandbox`; `None` in mode `full` and where no sandbox can be set up.
fn sandbox(
    project: &Project,
    settings: &UserSettings,
    overrides: &PermissionOverrides,
    toolset: &Toolset,
    agents: &dyn Agents,
) -> Option<SandboxRunner> {
    let mut permissions = toolset::permissions(settings, overrides).ok()?;
    let mode = permissions.mode;
    if mode == PermissionMode::Full {
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
        policy: settings.policy.rules().clone(),
        approvals: ApprovalMode::from(toolset.approvals),
        agents: agents.list().iter().map(callable).collect(),
        prices: settings.prices.clone(),
        windows: settings.windows().clone(),
    };
    let environment = toolset::command_environment(settings).ok()?;
    let own = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let mut policy = toolset::policy(project, settings, mode, overrides.network);
    policy.tmp = project.state().join("workers");
    policy.runs = antiphon_sandbox::Runs::TaskWorker;
    let runner = antiphon_sandboxed::SandboxRunnerSettings {
        worker: WorkerCommand { program: "/proc/self/exe".into(), args: vec![TASK_WORKER.into()] },
        policy,
        limits: antiphon_sandboxed::WorkerLimits::default(),
        environment: environment.variables().map(own).collect(),
        worker_settings: serde_json::to_value(worker_settings).ok()?,
        kept: Some(CALL_RECORDS.into()),
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
    if settings.terminals.is_empty() || !project.state().is_dir() {
        return Ok(None);
    }
    let environment = toolset::command_environment(settings).map_err(ProjectError::InvalidInput)?;
    // A terminal sets its own TERM, and shows output page by page itself.
    let own = |(name, _): &(&OsString, &OsString)| *name != "TERM" && *name != "PAGER";
    let pair = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let terminals = TerminalSettings {
        profiles: settings.terminals.clone(),
        folder: project.state().join(TERMINALS),
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
    Ok(RemoteRunner::new(peers, RECONNECT))
}

/// The runner `a2a` for the configured remote agents.
fn a2a(settings: &UserSettings) -> Result<A2aRunner, ProjectError> {
    let mut agents = RemoteAgents::default();
    for (name, remote) in &settings.a2a.remote {
        let config = match remote.config(name, &settings.environment) {
            Ok(config) => config,
            // The other remote agents still work.
            Err(error) => {
                settings.environment.warnings.report(&format!("{error}; it cannot be reached"));
                continue;
            }
        };
        agents
            .add(name.as_str(), &config)
            .map_err(|error| ProjectError::InvalidInput(format!("[a2a.remote.{name}]: {error}")))?;
    }
    Ok(A2aRunner::new(agents, RECONNECT))
}
