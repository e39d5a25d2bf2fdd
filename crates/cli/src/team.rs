//! Who can be called here, and where they can run.

use std::ffi::OsString;
use std::sync::Arc;

use antiphon_agent_files::{AgentCatalog, Watching};
use antiphon_core::port::{Agents, Runner};
use antiphon_core::{AgentName, visible};
use antiphon_permissions::{Mode, Remembered, RuleEntry};
use antiphon_remote::{Peers, RemoteRunner, RetryPolicy};
use antiphon_sandboxed::{SandboxRunner, WORKERS_DEFAULT, WorkerCommand};
use antiphon_terminal::{GuardCommand, TerminalRunner, TerminalSettings};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::commands::agents::folders;
use crate::commands::attach::TERMINALS;
use crate::config::Config;
use crate::failure::Failure;
use crate::hands::{self, Allowed, Toolset};
use crate::project::Project;
use crate::prompt::{self, Rules};
use crate::task_worker::{self, Asks, Callable, WorkerSettings};

/// What this binary is told in order to look after a program in a terminal.
pub(crate) const TERMINAL_GUARD: &str = "__terminal_guard";

/// Agents that are gone and that nobody has heard of yet. Of more, the latest are not told.
const GONE_MAX: usize = 1024;

/// Who can be called here, and where they can run.
pub(crate) struct Team {
    pub(crate) agents: Arc<AgentCatalog>,
    pub(crate) runners: Vec<Arc<dyn Runner>>,
    /// Agents that are no longer defined, as that happens.
    pub(crate) gone: mpsc::Receiver<AgentName>,
    stop: CancellationToken,
    /// Follows the files of the agents.
    watching: JoinSet<()>,
}

impl Team {
    /// The agents of a project and the user's own, and the runners there are.
    pub(crate) fn of(
        project: &Project,
        config: &Config,
        allowed: &Allowed,
        hands: &Toolset,
        rules: &Rules,
    ) -> Result<Self, Failure> {
        let (root, rules) = (project.root().to_owned(), rules.clone());
        let system_prompt = move |own: antiphon_core::port::PromptSource<'_>| {
            prompt::agent_prompt(own, &root, &rules)
        };
        let agents = Arc::new(AgentCatalog::open(folders(project, config).into(), system_prompt));
        for problem in agents.problems() {
            eprintln!("antiphon: {}", visible(&problem.to_string()));
        }
        let mut runners: Vec<Arc<dyn Runner>> = Vec::new();
        if let Some(sandbox) = sandbox(project, config, allowed, hands, &*agents) {
            runners.push(Arc::new(sandbox));
        }
        runners.push(Arc::new(loopback(config)?));
        runners.extend(terminals(project, config)?.map(|terminals| Arc::new(terminals) as _));
        let stop = CancellationToken::new();
        let mut watching = JoinSet::new();
        let book = Arc::clone(&agents);
        let (leaving, gone) = mpsc::channel(GONE_MAX);
        watching.spawn(book.watch(Watching::Told, stop.clone(), move |changes| {
            for problem in &changes.problems {
                tracing::warn!("{}", visible(&problem.to_string()));
            }
            for name in changes.removed.iter().filter_map(|name| AgentName::parse(name).ok()) {
                // When nobody listens, nobody wants to know.
                let _ = leaving.try_send(name);
            }
        }));
        Ok(Self { agents, runners, gone, stop, watching })
    }

    /// The same, with the rules of the project as they are.
    pub(crate) fn usual(
        project: &Project,
        config: &Config,
        allowed: &Allowed,
        hands: &Toolset,
    ) -> Result<Self, Failure> {
        let rules = Rules::find(config.path.parent(), project.root(), project.working_folder());
        Self::of(project, config, allowed, hands, &rules)
    }

    /// Nobody looks at the files any more.
    pub(crate) async fn disband(mut self) {
        self.stop.cancel();
        while self.watching.join_next().await.is_some() {}
    }
}

/// The runner `sandbox`; none where everything is allowed, or where there is no sandbox.
fn sandbox(
    project: &Project,
    config: &Config,
    allowed: &Allowed,
    hands: &Toolset,
    agents: &dyn Agents,
) -> Option<SandboxRunner> {
    let mode = allowed.mode.unwrap_or(config.permissions.mode);
    if mode == Mode::Full {
        return None;
    }
    let mut permissions = config.permissions.clone();
    permissions.mode = mode;
    permissions.allow.extend(allowed.rules.iter().map(|rule| RuleEntry::from(rule.as_str())));
    let remembered = Remembered::open(config.remembered_path(), project.root()).ok();
    let remembered = remembered.map(|remembered| remembered.rules()).unwrap_or_default();
    permissions.allow.extend(remembered.iter().map(|rule| RuleEntry::from(rule.0.as_str())));
    let callable = |agent: &Arc<antiphon_core::AgentDefinition>| Callable {
        name: agent.name.clone(),
        description: agent.description.clone(),
    };
    let settings = WorkerSettings {
        root: project.root().to_owned(),
        permissions,
        asks: Asks::from(hands.asking),
        agents: agents.list().iter().map(callable).collect(),
        prices: config.prices.clone(),
        windows: config.windows().clone(),
    };
    let environment = hands::environment(config).ok()?;
    let own = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let mut policy = hands::policy(project, config, mode, allowed.network);
    policy.tmp = project.folder().join("workers");
    let settings = antiphon_sandboxed::Settings {
        worker: WorkerCommand {
            program: "/proc/self/exe".into(),
            args: vec![task_worker::TASK_WORKER.into()],
        },
        policy,
        limits: antiphon_sandboxed::Limits::default(),
        environment: environment.variables().map(own).collect(),
        worker_settings: serde_json::to_value(settings).ok()?,
        workers_max: WORKERS_DEFAULT,
    };
    match SandboxRunner::new(settings) {
        Ok(runner) => Some(runner),
        Err(error) => {
            tracing::info!(%error, "there is no runner `sandbox` here");
            None
        }
    }
}

/// The runner `terminal`, for the programs that the user named.
fn terminals(project: &Project, config: &Config) -> Result<Option<TerminalRunner>, Failure> {
    if config.terminals.is_empty() || !project.folder().is_dir() {
        return Ok(None);
    }
    let environment = hands::environment(config).map_err(Failure::usage)?;
    // A terminal has a type of its own, and pages by itself.
    let own = |(name, _): &(&OsString, &OsString)| *name != "TERM" && *name != "PAGER";
    let pair = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
    let settings = TerminalSettings {
        profiles: config.terminals.clone(),
        folder: project.folder().join(TERMINALS),
        root: project.root().to_owned(),
        environment: environment.variables().filter(own).map(pair).collect(),
        guard: GuardCommand { program: "/proc/self/exe".into(), args: vec![TERMINAL_GUARD.into()] },
    };
    let refuse = |error: antiphon_terminal::SettingsError| Failure::usage(error.to_string());
    TerminalRunner::new(settings).map(Some).map_err(refuse)
}

/// The runner `loopback`, to the peers that the user configured.
fn loopback(config: &Config) -> Result<RemoteRunner, Failure> {
    let mut peers = Peers::default();
    for (name, peer) in &config.peers {
        let token = match peer.token(name) {
            Ok(token) => token,
            // The others, and everything else, can do without it.
            Err(failure) => {
                eprintln!("antiphon: {failure}; it cannot be reached");
                continue;
            }
        };
        peers
            .add(name, &peer.url, &token)
            .map_err(|error| Failure::usage(format!("[peers.{name}]: {error}")))?;
    }
    Ok(RemoteRunner::new(peers, RetryPolicy::default()))
}
