//! The tools of a project, the sandbox they run in, and the permission gate in front of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use antiphon_core::port::Gate;
use antiphon_core::redaction::Secrets;
use antiphon_core::{ToolExecutor, visible};
use antiphon_egress_proxy::SystemResolver;
use antiphon_file_tools::{
    EditTool, GlobTool, GrepTool, Outside, ReadTool, ReadTracker, Workspace, WorkspaceConfig,
    WriteTool,
};
use antiphon_hosts::HostAccess;
use antiphon_mcp::{Mcp, McpOptions};
use antiphon_permissions::{Bounds, Effects, Mode, Remembered, RuleEntry, Sandbox};
use antiphon_runtime::{ApprovalPolicy, NoTools, OpenGate};
use antiphon_sandbox::{
    Limits, Network, Policy, Protected, SECRETS_IN_HOME, SECRETS_OF_MACHINE, UnixSockets,
};
use antiphon_shell::{Environment, HostNetwork, Shell, WithoutSandbox, WorkerCommand};
use antiphon_toolbox::{OutputStore, RedactingTools, ToolHandler, Toolbox};

use crate::error::ProjectError;
use crate::project::Project;
use crate::settings::{SandboxConfig, UserSettings};
use crate::state::state_base;

/// First argument of the process that runs shell commands in the sandbox.
pub const WORKER: &str = "__worker";

/// How long MCP servers whose tools are not cached may take to list them.
const MCP_CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The tools of a project and the permission gate in front of them.
pub struct Toolset {
    /// Runs tool calls. Results never hold the secrets of `secrets`.
    pub tools: Arc<dyn ToolExecutor>,
    /// Decides whether a call runs, needs an approval or is refused.
    pub gate: Arc<dyn Gate>,
    /// What happens to a call that needs an approval.
    pub approvals: ApprovalPolicy,
    /// The connected MCP servers; `None` when none is configured. The caller shuts them down.
    pub mcp: Option<Arc<Mcp>>,
    /// Secrets that are redacted from tool results; more can be added.
    pub secrets: Secrets,
}

/// Permissions of one command that differ from the settings.
#[derive(Debug, Clone, Default)]
pub struct PermissionOverrides {
    /// Replaces the configured mode.
    pub mode: Option<Mode>,
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
            mcp: None,
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
        let permissions = permissions(settings, overrides);
        let mode = permissions.mode;
        let mcp = mcp_servers(project, settings).await;
        let mut executors: Vec<Arc<dyn ToolExecutor>> = Vec::new();
        let hosts = HostGate::default();
        match shell(project, settings, mode, overrides.network, Some(hosts.network())) {
            Ok(shell) => executors.push(Arc::new(shell)),
            Err(reason) => {
                settings.environment.warnings.report(&format!("no `bash` here: {reason}"));
            }
        }
        executors.extend(mcp.clone().map(|servers| servers as Arc<dyn ToolExecutor>));
        let results = project.state().join("results");
        let secrets: Secrets = settings.secrets().into_iter().collect();
        let hidden = hidden_paths(project, settings);
        let files = WorkspaceConfig {
            hidden: hidden.clone(),
            // Every call has passed the gate, which asks about paths outside of the project.
            outside: Outside::AskedFor,
            ..WorkspaceConfig::of(project.root(), file_mode(mode))
        };
        let tools = toolbox(files, &results, executors)?.redacting(secrets.clone());
        let tools = Arc::new(tools);
        let known = Arc::clone(&tools);
        let bounds = Bounds {
            root: project.root().to_owned(),
            sandbox: if mode == Mode::Full { Sandbox::None } else { Sandbox::OfCommand },
            hidden,
            effects: Effects::new(move |tool| known.effect(tool)),
        };
        let gate = gate(project, settings, &permissions, bounds)?;
        hosts.open(&gate);
        let tools = Arc::new(RedactingTools::new(tools, secrets.clone()));
        Ok(Self { tools, gate, approvals: ApprovalPolicy::Refuse, mcp, secrets })
    }

    /// No tools, but the gate: it records rules that the user allows for good.
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

/// The configured permissions with the overrides of this command.
pub(crate) fn permissions(
    settings: &UserSettings,
    overrides: &PermissionOverrides,
) -> antiphon_permissions::Config {
    let mut permissions = settings.permissions.clone();
    permissions.mode = overrides.mode.unwrap_or(permissions.mode);
    permissions.allow.extend(overrides.rules.iter().map(|rule| RuleEntry::from(rule.as_str())));
    if overrides.network || settings.sandbox.network {
        // Commands have the whole network: no question about a host would change that.
        permissions.allow.push(RuleEntry::from("network"));
    }
    permissions
}

/// The hosts that a gate allows. It allows none until the gate is known: the gate knows the tools,
/// and is made after them.
#[derive(Clone, Default)]
struct HostGate(Arc<OnceLock<Arc<antiphon_permissions::Gate>>>);

impl HostGate {
    fn network(&self) -> HostNetwork {
        let gate = Arc::clone(&self.0);
        HostNetwork::new(Arc::new(SystemResolver), move |granted| {
            gate.get().map_or_else(HostAccess::default, |gate| gate.hosts(granted))
        })
    }

    fn open(&self, gate: &Arc<antiphon_permissions::Gate>) {
        // It is set once, by the function that made it.
        let _ = self.0.set(Arc::clone(gate));
    }
}

fn gate(
    project: &Project,
    settings: &UserSettings,
    permissions: &antiphon_permissions::Config,
    bounds: Bounds,
) -> Result<Arc<antiphon_permissions::Gate>, ProjectError> {
    let gate = antiphon_permissions::Gate::new(permissions, bounds)
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
pub fn file_mode(mode: Mode) -> antiphon_file_tools::Mode {
    match mode {
        Mode::ReadOnly => antiphon_file_tools::Mode::ReadOnly,
        Mode::Workspace => antiphon_file_tools::Mode::Workspace,
        Mode::Full => antiphon_file_tools::Mode::Full,
    }
}

/// The file tools for a workspace, and `executors`. Results that are too long are stored in `results`.
pub fn toolbox(
    files: WorkspaceConfig,
    results: &Path,
    executors: Vec<Arc<dyn ToolExecutor>>,
) -> Result<Toolbox, ProjectError> {
    let workspace =
        Workspace::open(files).map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    let (workspace, seen) = (Arc::new(workspace), Arc::new(ReadTracker::new()));
    let outputs = OutputStore::open(results).map_err(|error| {
        ProjectError::InvalidInput(format!("cannot use {}: {error}", results.display()))
    })?;
    let handlers: Vec<Box<dyn ToolHandler>> = vec![
        Box::new(ReadTool::new(Arc::clone(&workspace), Arc::clone(&seen))),
        Box::new(WriteTool::new(Arc::clone(&workspace), Arc::clone(&seen))),
        Box::new(EditTool::new(Arc::clone(&workspace), seen)),
        Box::new(GrepTool::new(Arc::clone(&workspace))),
        Box::new(GlobTool::new(workspace)),
    ];
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
    mode: Mode,
    network: bool,
    hosts: Option<HostNetwork>,
) -> Result<Shell, String> {
    let policy = policy(project, settings, mode, network);
    let has_network = mode == Mode::Full || policy.network == Network::On;
    let shell = antiphon_shell::Settings {
        worker: worker(),
        policy,
        network: hosts.filter(|_| !has_network),
        results: project.state().join("results"),
        environment: command_environment(settings)?,
        changes_repository: antiphon_permissions::changes_repository,
        without_sandbox: WithoutSandbox::AskedFor,
    };
    Shell::new(shell).map_err(|error| error.to_string())
}

/// What sandboxed commands may read, write and reach.
pub fn policy(project: &Project, settings: &UserSettings, mode: Mode, network: bool) -> Policy {
    let unix_sockets =
        if settings.sandbox.unix_sockets { UnixSockets::Allowed } else { UnixSockets::Refused };
    let network = if network || settings.sandbox.network { Network::On } else { Network::Off };
    Policy {
        mode: match mode {
            Mode::ReadOnly => antiphon_sandbox::Mode::ReadOnly,
            Mode::Workspace => antiphon_sandbox::Mode::Workspace,
            Mode::Full => antiphon_sandbox::Mode::Full,
        },
        roots: vec![project.root().to_owned()],
        protected: Protected::usual(),
        hidden: hidden_paths(project, settings),
        tmp: project.state().join("tmp"),
        readable: settings.sandbox.readable.clone(),
        network,
        unix_sockets,
        repository: None,
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

/// What neither commands nor file tools may read: keys, passwords, the user's own list, and the files of
/// Antiphon itself, in this and every other project.
pub fn hidden_paths(project: &Project, settings: &UserSettings) -> Vec<PathBuf> {
    let (environment, root) = (&settings.environment, project.root());
    let home = environment.home();
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let mut hidden: Vec<PathBuf> =
        SECRETS_IN_HOME.iter().filter_map(|name| in_home(name)).collect();
    hidden.extend(SECRETS_OF_MACHINE.iter().map(PathBuf::from));
    hidden.extend(settings.sandbox.hidden.iter().filter_map(|path| match path.strip_prefix("~") {
        Ok(rest) => home.as_ref().map(|home| home.join(rest)),
        Err(_) => Some(path.clone()),
    }));
    hidden.extend(state_base(environment).ok());
    // What lies in the project and is missing needs no place reserved for it. The rest may appear later.
    hidden.retain(|path| !path.starts_with(root) || path.exists());
    // The user's configuration folder is hidden; when the project lies in it, only our files are.
    match settings.path.parent() {
        Some(folder) if root.starts_with(folder) => {
            hidden.extend([settings.path.clone(), settings.remembered_path()]);
        }
        Some(folder) => hidden.push(folder.to_owned()),
        None => {}
    }
    // Hiding a folder that contains the project would hide the project.
    hidden.retain(|path| !root.starts_with(path));
    hidden
}

/// Connects to the configured MCP servers and lists their tools. Warns about those without tools; `None`
/// when none is configured.
pub async fn mcp_servers(project: &Project, settings: &UserSettings) -> Option<Arc<Mcp>> {
    if settings.mcp.0.is_empty() {
        return None;
    }
    let options = McpOptions {
        environment: settings.environment.texts(),
        workspace: Some(project.root().to_owned()),
        cache_file: Some(project.state().join("mcp-tools.json")),
    };
    let servers = Mcp::new(settings.mcp.clone(), options);
    servers.connect_all(MCP_CONNECT_TIMEOUT).await;
    for server in servers.status() {
        if let Some(error) = server.last_error.filter(|_| server.tools == 0) {
            let warning =
                format!("MCP server `{}` is unavailable: {}", server.name, visible(&error));
            settings.environment.warnings.report(&warning);
        }
    }
    Some(Arc::new(servers))
}
