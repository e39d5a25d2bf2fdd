//! What agents can do here, and what of it they may: the tools, the sandbox around them, and the gate
//! in front of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::Gate;
use antiphon_core::redaction::Secrets;
use antiphon_core::{ToolExecutor, visible};
use antiphon_file_tools::{
    EditTool, GlobTool, GrepTool, ReadTool, ReadTracker, Workspace, WorkspaceConfig, WriteTool,
};
use antiphon_mcp::{Mcp, McpOptions};
use antiphon_permissions::{Bounds, Effects, Mode, Remembered, RuleEntry};
use antiphon_runtime::{ApprovalPolicy, NoTools, OpenGate};
use antiphon_sandbox::{Network, Policy, Protected, SECRETS_IN_HOME};
use antiphon_shell::{Environment, Shell, WorkerCommand};
use antiphon_toolbox::{OutputStore, RedactingTools, ToolHandler, Toolbox};

use crate::commands::Ask;
use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;

/// What this binary is told in order to be a worker.
pub(crate) const WORKER: &str = "__worker";

/// How long MCP servers whose tools are not known yet may take to tell them.
const SERVERS_PATIENCE: Duration = Duration::from_secs(20);

/// What agents can do here, and what of it they may.
pub(crate) struct Toolset {
    pub(crate) tools: Arc<dyn ToolExecutor>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) approvals: ApprovalPolicy,
    /// The servers some of the tools come from.
    pub(crate) servers: Option<Arc<Mcp>>,
    /// What the tools do not say.
    pub(crate) secrets: Secrets,
}

/// What somebody allows for this time only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    /// In place of the configured mode.
    pub(crate) mode: Option<Mode>,
    /// Rules beside the configured ones.
    pub(crate) rules: Vec<String>,
    /// Commands may use the network.
    pub(crate) network: bool,
}

impl Toolset {
    /// Nothing at all: for those who only look.
    pub(crate) fn none() -> Self {
        Self {
            tools: Arc::new(NoTools),
            gate: Arc::new(OpenGate),
            approvals: ApprovalPolicy::Refuse,
            servers: None,
            secrets: Secrets::default(),
        }
    }

    /// What becomes of a call that needs somebody's word.
    pub(crate) fn asking(self, ask: Option<Ask>, somebody: bool) -> Self {
        let usual = if somebody { Ask::Terminal } else { Ask::Refuse };
        let asking = match ask.unwrap_or(usual) {
            Ask::Terminal | Ask::Wait => ApprovalPolicy::Wait { timeout: None },
            Ask::Refuse => ApprovalPolicy::Refuse,
        };
        Self { asking, ..self }
    }

    /// The tools of a project, as the user configured them.
    pub(crate) async fn of(
        project: &Project,
        config: &Config,
        allowed: &Allowed,
    ) -> Result<Self, Failure> {
        project.prepare()?;
        let mut permissions = config.permissions.clone();
        permissions.mode = allowed.mode.unwrap_or(permissions.mode);
        permissions.allow.extend(allowed.rules.iter().map(|rule| RuleEntry::from(rule.as_str())));
        let mode = permissions.mode;
        let servers = servers(project, config).await;
        let mut executors: Vec<Arc<dyn ToolExecutor>> = Vec::new();
        match shell(project, config, mode, allowed.network) {
            Ok(shell) => executors.push(Arc::new(shell)),
            Err(reason) => eprintln!("antiphon: no `bash` here: {reason}"),
        }
        executors.extend(servers.clone().map(|servers| servers as Arc<dyn ToolExecutor>));
        let results = project.folder().join("results");
        let secrets: Secrets = config.secrets().into_iter().collect();
        let tools = toolbox(project.root(), &results, mode, executors)?.redacting(secrets.clone());
        let tools = Arc::new(tools);
        let known = Arc::clone(&tools);
        let bounds = Bounds {
            root: project.root().to_owned(),
            sandboxed: mode != Mode::Full,
            effects: Effects::new(move |tool| known.effect(tool)),
        };
        let gate = gate(project, config, &permissions, bounds)?;
        let tools = Arc::new(RedactingTools::new(tools, secrets.clone()));
        Ok(Self { tools, gate, approvals: ApprovalPolicy::Refuse, servers, secrets })
    }

    /// No tools, but somebody who keeps what is allowed always.
    pub(crate) fn keeping(project: &Project, config: &Config) -> Result<Self, Failure> {
        let bounds = Bounds {
            root: project.root().to_owned(),
            sandboxed: true,
            effects: Effects::new(|_| None),
        };
        Ok(Self { gate: gate(project, config, &config.permissions, bounds)?, ..Self::none() })
    }
}

fn gate(
    project: &Project,
    config: &Config,
    permissions: &antiphon_permissions::Config,
    bounds: Bounds,
) -> Result<Arc<dyn Gate>, Failure> {
    let gate = antiphon_permissions::Gate::new(permissions, bounds)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let remembered = Remembered::open(config.remembered_path(), project.root())
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Arc::new(gate.remembering(remembered)))
}

/// How this binary is started as a worker: by a name that holds also when its file is replaced.
pub(crate) fn worker() -> WorkerCommand {
    WorkerCommand { program: PathBuf::from("/proc/self/exe"), args: vec![WORKER.into()] }
}

/// The tools for files beneath a folder, and these. What is too long goes to `results`.
pub(crate) fn toolbox(
    root: &Path,
    results: &Path,
    mode: Mode,
    executors: Vec<Arc<dyn ToolExecutor>>,
) -> Result<Toolbox, Failure> {
    let files = match mode {
        Mode::ReadOnly => antiphon_file_tools::Mode::ReadOnly,
        Mode::Workspace => antiphon_file_tools::Mode::Workspace,
        Mode::Full => antiphon_file_tools::Mode::Full,
    };
    let workspace = Workspace::open(WorkspaceConfig::of(root, files))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (workspace, reads) = (Arc::new(workspace), Arc::new(ReadTracker::new()));
    let aside = OutputStore::open(results)
        .map_err(|error| Failure::usage(format!("cannot use {}: {error}", results.display())))?;
    let handlers: Vec<Box<dyn ToolHandler>> = vec![
        Box::new(ReadTool::new(Arc::clone(&workspace), Arc::clone(&reads))),
        Box::new(WriteTool::new(Arc::clone(&workspace), Arc::clone(&reads))),
        Box::new(EditTool::new(Arc::clone(&workspace), reads)),
        Box::new(GrepTool::new(Arc::clone(&workspace))),
        Box::new(GlobTool::new(workspace)),
    ];
    Toolbox::new(handlers, executors, Arc::new(aside))
        .map_err(|error| Failure::usage(error.to_string()))
}

/// What commands find in their environment.
pub(crate) fn environment(config: &Config) -> Result<Environment, String> {
    let secret = config.secret_variables();
    Environment::choose(std::env::vars_os(), &config.sandbox.env, &secret)
        .map_err(|error| error.to_string())
}

/// What runs commands, in the sandbox.
pub(crate) fn shell(
    project: &Project,
    config: &Config,
    mode: Mode,
    network: bool,
) -> Result<Shell, String> {
    let settings = antiphon_shell::Settings {
        worker: worker(),
        policy: policy(project, config, mode, network),
        results: project.folder().join("results"),
        environment: environment(config)?,
    };
    Shell::new(settings).map_err(|error| error.to_string())
}

/// What commands may touch.
pub(crate) fn policy(project: &Project, config: &Config, mode: Mode, network: bool) -> Policy {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let secrets = home.iter().flat_map(|home| SECRETS_IN_HOME.iter().map(|name| home.join(name)));
    // The user's own folder; where the project lies in it, only what is ours there.
    let own: Vec<PathBuf> = match config.path.parent() {
        Some(folder) if project.root().starts_with(folder) => {
            vec![config.path.clone(), config.remembered_path()]
        }
        Some(folder) => vec![folder.to_owned()],
        None => Vec::new(),
    };
    let network = if network || config.sandbox.network { Network::On } else { Network::Off };
    Policy {
        mode: match mode {
            Mode::ReadOnly => antiphon_sandbox::Mode::ReadOnly,
            Mode::Workspace => antiphon_sandbox::Mode::Workspace,
            Mode::Full => antiphon_sandbox::Mode::Full,
        },
        roots: vec![project.root().to_owned()],
        protected: Protected::usual(),
        hidden: secrets.chain(own).filter(|path| path.exists()).collect(),
        tmp: project.folder().join("tmp"),
        readable: config.sandbox.readable.clone(),
        network,
        limits: antiphon_sandbox::Limits::default(),
    }
}

/// The servers the user configured, with their tools known as far as they answer.
pub(crate) async fn servers(project: &Project, config: &Config) -> Option<Arc<Mcp>> {
    if config.mcp.0.is_empty() {
        return None;
    }
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    let options = McpOptions {
        environment,
        workspace: Some(project.root().to_owned()),
        cache_file: Some(project.folder().join("mcp-tools.json")),
    };
    let servers = Mcp::new(config.mcp.clone(), options);
    servers.connect_all(SERVERS_PATIENCE).await;
    for server in servers.status() {
        if let Some(error) = server.last_error.filter(|_| server.tools == 0) {
            let error = visible(&error);
            eprintln!("antiphon: the MCP server `{}` is not there: {error}", server.name);
        }
    }
    Some(Arc::new(servers))
}
