//! The process that runs one sandboxed task: the native loop, with the journal and the model of the process
//! that started it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{AgentList, Agents, Gate, PromptSource, RandomIds, RunnerError};
use antiphon_core::{
    AgentDefinition, AgentName, ModelRef, PriceTable, Provider, RawJson, TaskStatus, ToolExecutor,
};
use antiphon_file_tools::{OutsidePaths, WorkspaceConfig};
use antiphon_permissions::{Bounds, Effects, Sandbox};
use antiphon_runtime::{
    ApprovalPolicy, Dispatch, Models, Orchestrator, OrchestratorError, OrchestratorSettings,
    RuntimeDeps,
};
use antiphon_sandbox::{Network, Policy};
use antiphon_sandboxed::WorkerPorts;
use antiphon_shell::{Shell, WithoutSandbox};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::machine_clock::MachineClock;
use crate::settings::ContextWindows;
use crate::toolset;

/// First argument of the process that runs one sandboxed task.
pub const TASK_WORKER: &str = "__task_worker";

/// How long running calls may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Settings of a worker. Commands in the sandbox can read them, so they hold no secret.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerSettings {
    pub(crate) root: PathBuf,
    pub(crate) permissions: antiphon_permissions::PermissionConfig,
    /// Rules above the permissions.
    pub(crate) policy: antiphon_permissions::PolicyRules,
    pub(crate) approvals: ApprovalMode,
    /// Agents the model can call. The process that started the worker carries out the calls.
    pub(crate) agents: Vec<CallableAgent>,
    pub(crate) prices: PriceTable,
    pub(crate) windows: ContextWindows,
}

/// What happens to a call that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ApprovalMode {
    Wait,
    Refuse,
}

impl From<ApprovalPolicy> for ApprovalMode {
    fn from(policy: ApprovalPolicy) -> Self {
        match policy {
            ApprovalPolicy::Wait { .. } => Self::Wait,
            ApprovalPolicy::Refuse => Self::Refuse,
        }
    }
}

/// An agent that the model can call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallableAgent {
    pub(crate) name: AgentName,
    pub(crate) description: String,
}

/// Runs one task to its end. `environment` holds the variables the process was started with.
pub fn worker_main(environment: &Environment) -> ExitCode {
    antiphon_sandboxed::worker_main(async |ports| work(ports, environment).await)
}

async fn work(ports: WorkerPorts, environment: &Environment) -> Result<(), RunnerError> {
    let WorkerPorts { task_id, settings, journal, provider, cancel, interrupt, rest } = ports;
    let refuse = |reason: String| RunnerError::Refused { reason };
    let settings: WorkerSettings =
        serde_json::from_value(settings).map_err(|error| refuse(error.to_string()))?;
    let tools = tools(&settings, environment).map_err(refuse)?;
    let asking = match settings.approvals {
        ApprovalMode::Wait => ApprovalPolicy::Wait { timeout: None },
        ApprovalMode::Refuse => ApprovalPolicy::Refuse,
    };
    let orchestrator = Orchestrator::new(RuntimeDeps {
        journal,
        gate: gate(&settings, &tools).map_err(refuse)?,
        models: Arc::new(OneModel { provider, windows: settings.windows }),
        tools,
        agents: Some(Arc::new(OtherAgents::new(settings.agents))),
        runners: Vec::new(),
        prices: Arc::new(settings.prices),
        clock: Arc::new(MachineClock),
        ids: Arc::new(RandomIds),
        // The process that owns the journal waits for it.
        settings: OrchestratorSettings {
            approvals: asking,
            dispatch: Dispatch::Parent,
            storage_wait_max: Some(Duration::ZERO),
            ..OrchestratorSettings::default()
        },
    });
    let state = orchestrator.task_alone(&task_id).await.map_err(stopped)?;
    if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
        return Ok(());
    }
    orchestrator.start(&task_id).await.map_err(stopped)?;
    let ended = tokio::select! {
        ended = orchestrator.rest(&task_id) => match ended {
            // Suspended: only the orchestrator that started the worker can answer its calls.
            Ok(_) | Err(OrchestratorError::NotRunning { .. }) => Ok(()),
            Err(error) => Err(stopped(error)),
        },
        () = cancel => orchestrator.cancel(&task_id).await.map_err(stopped),
        () = interrupt => orchestrator.interrupt(&task_id).await.map_err(stopped),
        () = rest => Ok(()),
    };
    orchestrator.shutdown(SHUTDOWN_TIMEOUT).await;
    ended
}

fn stopped(error: OrchestratorError) -> RunnerError {
    if let OrchestratorError::Journal(error) = error {
        return RunnerError::Journal(error);
    }
    RunnerError::Unavailable { reason: error.to_string() }
}

/// The tools of a worker. The process is sandboxed already, so commands get no second sandbox.
fn tools(
    settings: &WorkerSettings,
    environment: &Environment,
) -> Result<Arc<dyn ToolExecutor>, String> {
    let variables = antiphon_shell::Environment::choose(environment.pairs(), &[], &[]);
    let policy = Policy {
        mode: antiphon_sandbox::SandboxMode::Full,
        roots: vec![settings.root.clone()],
        protected: Vec::new(),
        hidden: Vec::new(),
        tmp: "/tmp/commands".into(),
        readable: Vec::new(),
        network: Network::Off,
        unix_sockets: antiphon_sandbox::UnixSockets::Refused,
        repository: None,
        git_programs: antiphon_sandbox::GitPrograms::GitOnly,
        runs: antiphon_sandbox::Runs::Commands,
        limits: antiphon_sandbox::Limits::default(),
    };
    let results = Path::new("/tmp/results");
    let shell = Shell::new(antiphon_shell::ShellSettings {
        worker: toolset::worker(),
        policy,
        results: results.to_owned(),
        environment: variables.map_err(|error| error.to_string())?,
        // The sandbox of this process does not open the repository.
        changes_repository: |_| false,
        without_sandbox: WithoutSandbox::Impossible,
        // The runner's process is outside of it, and has no proxy for it.
        network: None,
    });
    let shell = shell.map_err(|error| error.to_string())?;
    let mode = settings.permissions.mode;
    // The sandbox of this process hides what is hidden, and the gate asks about the rest.
    let files = WorkspaceConfig {
        outside: OutsidePaths::AskedFor,
        ..WorkspaceConfig::of(&settings.root, toolset::file_mode(mode))
    };
    let tools = toolset::toolbox(files, results, vec![Arc::new(shell)]);
    Ok(Arc::new(tools.map_err(|error| error.to_string())?))
}

fn gate(settings: &WorkerSettings, tools: &Arc<dyn ToolExecutor>) -> Result<Arc<dyn Gate>, String> {
    let known = Arc::clone(tools);
    let bounds = Bounds {
        root: settings.root.clone(),
        sandbox: Sandbox::OfTask,
        hidden: Vec::new(),
        effects: Effects::new(move |tool| known.effect(tool)),
    };
    let gate = antiphon_permissions::Gate::new(&settings.permissions, bounds)
        .and_then(|gate| gate.within(&settings.policy));
    Ok(Arc::new(gate.map_err(|error| error.to_string())?))
}

/// Every model is the one that the runner asks.
struct OneModel {
    provider: Arc<dyn Provider>,
    windows: ContextWindows,
}

impl Models for OneModel {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::clone(&self.provider))
    }

    fn window_tokens(&self, model: &ModelRef) -> Option<u64> {
        self.windows.of(model)
    }
}

/// The agents a model can call, with the fields its request needs.
struct OtherAgents(AgentList);

impl OtherAgents {
    fn new(callable: Vec<CallableAgent>) -> Self {
        let agent = |CallableAgent { name, description }| {
            let definition = AgentDefinition::new(name, String::new());
            Arc::new(AgentDefinition { description, ..definition })
        };
        Self(callable.into_iter().map(agent).collect())
    }
}

impl Agents for OtherAgents {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.0.iter().find(|agent| agent.name.as_str() == name).cloned()
    }

    fn list(&self) -> AgentList {
        Arc::clone(&self.0)
    }

    fn system_prompt(&self, source: PromptSource<'_>) -> String {
        match source {
            PromptSource::Named(agent) => agent.context.clone(),
            PromptSource::AdHoc(prompt) => prompt.to_owned(),
        }
    }
}
