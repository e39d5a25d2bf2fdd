//! The tools of a project, the sandbox they run in, and the permission gate in front of them.

mod control_tool;
mod mcp_login;
pub(crate) mod mcp_pool;
mod mcp_test;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use antiphon_core::port::{Gate, Rule};
use antiphon_core::redaction::Secrets;
use antiphon_core::{CONTROL_REQUEST, Offer, ToolExecutor};
use antiphon_egress_proxy::SystemResolver;
use antiphon_file_tools::{
    EditTool, GlobTool, GrepTool, OutsidePaths, ReadTool, ReadTracker, Workspace, WorkspaceConfig,
    WriteTool,
};
use antiphon_hosts::HostAccess;
use antiphon_permissions::{Bounds, Effects, PermissionMode, Remembered, RuleEntry, Sandbox};
use antiphon_runtime::{ApprovalPolicy, NoTools, OpenGate};
use antiphon_sandbox::{Limits, Network, Policy, Protected, UnixSockets};
use antiphon_shell::{Environment, HostNetwork, Shell, WithoutSandbox, WorkerCommand};
use antiphon_toolbox::{OutputStore, RedactingTools, ToolHandler, Toolbox};
use antiphon_web::WebFetchTool;

use crate::error::ProjectError;
use crate::hidden_paths::hidden_paths;
use crate::project::Project;
use crate::settings::{SandboxConfig, UserSettings};
use crate::skills::skill_tool;
use control_tool::ControlTool;
pub use mcp_login::{McpLogin, PendingLogin};
pub use mcp_pool::{McpPool, UsedServers};
pub use mcp_test::{TestedServer, server_target, test_server};

/// First argument of the process that runs shell commands in the sandbox.
pub const WORKER: &str = "__worker";

/// The tools of a project and the permission gate in front of them.
pub struct Toolset {
    /// Runs tool calls. Results never hold the secrets of `secrets`.
    pub tools: Arc<dyn ToolExecutor>,
    /// Decides whether a call runs, needs an approval or is refused.
    pub gate: Arc<dyn Gate>,
    /// What happens to a call that needs an approval.
    pub approvals: ApprovalPolicy,
    /// Secrets that are redacted from tool results; more can be added.
    pub secrets: Secrets,
}

/// Permissions of one command that differ from the settings.
#[derive(Debug, Clone, Default)]
pub struct PermissionOverrides {
    /// Replaces the configured mode.
    pub mode: Option<PermissionMode>,
    /// Allow rules in addition to the configured ones.
    pub rules: Vec<String>,
    /// Commands may use the network.
    pub network: bool,
}

impl Toolset {
    /// No tools: for a process that only reads.
    pub fn none() -> Self {
        Self {
            tools: Arc::new(NoTools),
            gate: Arc::new(OpenGate),
            approvals: ApprovalPolicy::Refuse,
            secrets: Secrets::default(),
        }
    }

    /// The same toolset with another policy for calls that need an approval.
    #[must_use]
    pub fn with_approvals(self, approvals: ApprovalPolicy) -> Self {
        Self { approvals, ..self }
    }

    /// The tools of a project, as the user configured them. Calls that need an approval are refused until
    /// [`Self::with_approvals`] says otherwise.
    pub async fn of(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
    ) -> Result<Self, ProjectError> {
        project.prepare()?;
        settings.report_unused();
        let mcp = McpPool::new(project).connect(settings).await;
        Self::with_servers(project, settings, overrides, mcp)
    }

    /// The same with MCP servers that are connected.
    pub fn with_servers(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        mcp: Option<Arc<UsedServers>>,
    ) -> Result<Self, ProjectError> {
        let permissions = permissions(settings, overrides)?;
        let mode = permissions.mode;
        let mut executors: Vec<Arc<dyn ToolExecutor>> = Vec::new();
        let hosts = HostGate::default();
        match shell(project, settings, mode, overrides.network, Some(hosts.network())) {
            Ok(shell) => executors.push(Arc::new(shell)),
            Err(reason) => {
                settings.environment.warnings.report(&format!("no `bash` here: {reason}"));
            }
        }
        executors.extend(mcp.map(|servers| servers as Arc<dyn ToolExecutor>));
        let results = project.results_folder();
        let secrets: Secrets = settings.secrets().into_iter().collect();
        let hidden = hidden_paths(project, settings);
        let files = WorkspaceConfig {
            hidden: hidden.clone(),
            // Every call has passed the gate, which asks about paths outside of the project.
            outside: OutsidePaths::AskedFor,
            ..WorkspaceConfig::of(project.root(), file_mode(mode))
        };
        let control: Box<dyn ToolHandler> = Box::new(ControlTool::new(project.clone()));
        let web = WebFetchTool::new(hosts.access(), web_offer(&permissions));
        let mut further = vec![control, Box::new(web)];
        let skill = skill_tool(project, settings);
        further.extend(skill.map(|tool| Box::new(tool) as Box<dyn ToolHandler>));
        let tools = toolbox_with(files, &results, further, executors)?;
        let tools = Arc::new(tools.redacting(secrets.clone()));
        let known = Arc::clone(&tools);
        let bounds = Bounds {
            root: project.root().to_owned(),
            sandbox: if mode == PermissionMode::Full { Sandbox::None } else { Sandbox::OfCommand },
            hidden,
            // Control orders are asked about as tools of others are: they start programs.
            effects: Effects::new(move |tool| {
                known.effect(tool).filter(|_| tool != CONTROL_REQUEST)
            }),
        };
        let gate = gate(project, settings, &permissions, bounds)?;
        hosts.open(&gate);
        let tools = Arc::new(RedactingTools::new(tools, secrets.clone()));
        Ok(Self { tools, gate, approvals: ApprovalPolicy::Refuse, secrets })
    }

    /// No tools, but the gate: it records rules that the user always allows.
    pub fn gate_only(project: &Project, settings: &UserSettings) -> Result<Self, ProjectError> {
        let bounds = Bounds {
            root: project.root().to_owned(),
            sandbox: Sandbox::OfCommand,
            hidden: hidden_paths(project, settings),
            effects: Effects::new(|_| None),
        };
        let gate = gate(project, settings, &settings.permissions, bounds)?;
        Ok(Self { gate, ..Self::none() })
    }
}

/// Checks the permissions that a command asks for, before a task needs them: mode, network, and each rule.
pub fn check_overrides(
    project: &Project,
    settings: &UserSettings,
    overrides: &PermissionOverrides,
) -> Result<(), ProjectError> {
    let permissions = permissions(settings, overrides)?;
    let bounds = Bounds {
        root: project.root().to_owned(),
        sandbox: Sandbox::OfCommand,
        hidden: hidden_paths(project, settings),
        effects: Effects::new(|_| None),
    };
    gate(project, settings, &permissions, bounds).map(drop)
}

/// The configured permissions with the overrides of this command, which the policy may refuse.
pub(crate) fn permissions(
    settings: &UserSettings,
    overrides: &PermissionOverrides,
) -> Result<antiphon_permissions::PermissionConfig, ProjectError> {
    overrides.mode.map_or(Ok(()), |mode| settings.policy.check_mode(mode))?;
    if overrides.network {
        settings.policy.check_whole_network()?;
    }
    let mut permissions = settings.permissions.clone();
    permissions.mode = overrides.mode.unwrap_or(permissions.mode);
    permissions.allow.extend(overrides.rules.iter().map(|rule| RuleEntry::from(rule.as_str())));
    if overrides.network || settings.sandbox.network {
        // Commands have the whole network: no question about a host would change that.
        permissions.allow.push(RuleEntry::from("network"));
    }
    Ok(permissions)
}

/// The hosts that a gate allows. It allows none until the gate is known: the gate knows the tools,
/// and is made after them.
#[derive(Clone, Default)]
struct HostGate(Arc<OnceLock<Weak<antiphon_permissions::Gate>>>);

impl HostGate {
    fn network(&self) -> HostNetwork {
        HostNetwork::new(Arc::new(SystemResolver), self.access())
    }

    /// The hosts that a task with these granted rules may reach.
    fn access(&self) -> impl Fn(&[Rule]) -> HostAccess + Send + Sync + 'static {
        let gate = Arc::clone(&self.0);
        move |granted| {
            let gate = gate.get().and_then(Weak::upgrade);
            gate.map_or_else(HostAccess::default, |gate| gate.hosts(granted))
        }
    }

    fn open(&self, gate: &Arc<antiphon_permissions::Gate>) {
        // It is set once, by the function that made it. Weak: the gate knows the tools, and they know this.
        let _ = self.0.set(Arc::downgrade(gate));
    }
}

/// When a model is offered pages of the web: where a host can be reached.
fn web_offer(permissions: &antiphon_permissions::PermissionConfig) -> Offer {
    let allows_host = || permissions.allow.iter().any(|entry| entry.is_for("network"));
    match permissions.mode {
        PermissionMode::ReadOnly => Offer::NotYet,
        PermissionMode::Full => Offer::Always,
        PermissionMode::Workspace if allows_host() => Offer::Always,
        PermissionMode::Workspace => Offer::WhereAsked,
    }
}

fn gate(
    project: &Project,
    settings: &UserSettings,
    permissions: &antiphon_permissions::PermissionConfig,
    bounds: Bounds,
) -> Result<Arc<antiphon_permissions::Gate>, ProjectError> {
    let gate = antiphon_permissions::Gate::new(permissions, bounds)
        .and_then(|gate| gate.within(settings.policy.rules()))
        .map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    let remembered = Remembered::open(settings.remembered_path(), project.root())
        .map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    Ok(Arc::new(gate.remembering(remembered)))
}

/// Starts this binary as the process that runs shell commands. The path stays valid when the binary's file
/// is replaced.
pub fn worker() -> WorkerCommand {
    WorkerCommand { program: PathBuf::from("/proc/self/exe"), args: vec![WORKER.into()] }
}

/// The mode of file tools.
pub fn file_mode(mode: PermissionMode) -> antiphon_file_tools::Mode {
    match mode {
        PermissionMode::ReadOnly => antiphon_file_tools::Mode::ReadOnly,
        PermissionMode::Workspace => antiphon_file_tools::Mode::Workspace,
        PermissionMode::Full => antiphon_file_tools::Mode::Full,
    }
}

/// The file tools for a workspace, and `executors`. Results that are too long are stored in `results`.
pub fn toolbox(
    files: WorkspaceConfig,
    results: &Path,
    executors: Vec<Arc<dyn ToolExecutor>>,
) -> Result<Toolbox, ProjectError> {
    toolbox_with(files, results, Vec::new(), executors)
}

/// The same with further tools.
fn toolbox_with(
    files: WorkspaceConfig,
    results: &Path,
    further: Vec<Box<dyn ToolHandler>>,
    executors: Vec<Arc<dyn ToolExecutor>>,
) -> Result<Toolbox, ProjectError> {
    let workspace =
        Workspace::open(files).map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    let (workspace, seen) = (Arc::new(workspace), Arc::new(ReadTracker::new()));
    let outputs = OutputStore::open(results).map_err(|error| {
        ProjectError::InvalidInput(format!("cannot use {}: {error}", results.display()))
    })?;
    let mut handlers: Vec<Box<dyn ToolHandler>> = vec![
        Box::new(ReadTool::new(Arc::clone(&workspace), Arc::clone(&seen))),
        Box::new(WriteTool::new(Arc::clone(&workspace), Arc::clone(&seen))),
        Box::new(EditTool::new(Arc::clone(&workspace), seen)),
        Box::new(GrepTool::new(Arc::clone(&workspace))),
        Box::new(GlobTool::new(workspace)),
    ];
    handlers.extend(further);
    Toolbox::new(handlers, executors, Arc::new(outputs))
        .map_err(|error| ProjectError::InvalidInput(error.to_string()))
}

/// Environment variables of commands: the usual ones and the configured ones, without secrets.
pub fn command_environment(settings: &UserSettings) -> Result<Environment, String> {
    let secret = settings.secret_variables();
    Environment::choose(settings.environment.pairs(), &settings.sandbox.env, &secret)
        .map_err(|error| error.to_string())
}

/// The tool `bash`: runs commands in the sandbox, where they reach the hosts of `hosts`.
pub fn shell(
    project: &Project,
    settings: &UserSettings,
    mode: PermissionMode,
    network: bool,
    hosts: Option<HostNetwork>,
) -> Result<Shell, String> {
    let mode = settings.policy.at_most(mode);
    let policy = policy(project, settings, mode, network);
    let has_network = mode == PermissionMode::Full || policy.network == Network::On;
    let shell = antiphon_shell::ShellSettings {
        worker: worker(),
        policy,
        network: hosts.filter(|_| !has_network),
        results: project.results_folder(),
        environment: command_environment(settings)?,
        changes_repository: antiphon_permissions::changes_repository,
        without_sandbox: if settings.policy.allows_way_out() {
            WithoutSandbox::AskedFor
        } else {
            WithoutSandbox::Impossible
        },
    };
    Shell::new(shell).map_err(|error| error.to_string())
}

/// What sandboxed commands may read, write and reach.
pub fn policy(
    project: &Project,
    settings: &UserSettings,
    mode: PermissionMode,
    network: bool,
) -> Policy {
    let unix_sockets =
        if settings.sandbox.unix_sockets { UnixSockets::Allowed } else { UnixSockets::Refused };
    let network = network && settings.policy.check_whole_network().is_ok();
    let network = if network || settings.sandbox.network { Network::On } else { Network::Off };
    let mode = settings.policy.at_most(mode);
    Policy {
        mode: match mode {
            PermissionMode::ReadOnly => antiphon_sandbox::SandboxMode::ReadOnly,
            PermissionMode::Workspace => antiphon_sandbox::SandboxMode::Workspace,
            PermissionMode::Full => antiphon_sandbox::SandboxMode::Full,
        },
        roots: vec![project.root().to_owned()],
        protected: Protected::usual(),
        hidden: hidden_paths(project, settings),
        tmp: project.state().join("tmp"),
        readable: settings.sandbox.readable.clone(),
        network,
        unix_sockets,
        repository: None,
        git_programs: antiphon_sandbox::GitPrograms::GitOnly,
        runs: antiphon_sandbox::Runs::Commands,
        limits: limits(&settings.sandbox),
    }
}

fn limits(sandbox: &SandboxConfig) -> Limits {
    let bytes = |mib: u64| mib.saturating_mul(1 << 20);
    Limits {
        process_bytes_max: None,
        memory_bytes_max: sandbox.memory_mib.map(bytes),
        processes_max: sandbox.processes,
        disk_bytes_max: sandbox.disk_mib.map(bytes),
    }
}
