//! This binary as the worker of a task: the ordinary loop, in a process of its own, with the journal
//! and the model of whoever started it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Agents, Gate, PromptSource, RandomIds, RunnerError, SystemClock};
use antiphon_core::{
    AgentDefinition, AgentName, ModelRef, PriceTable, Provider, RawJson, TaskStatus, ToolExecutor,
};
use antiphon_permissions::{Bounds, Effects};
use antiphon_runtime::{
    ApprovalPolicy, Dispatch, Models, Orchestrator, OrchestratorError, RuntimeDeps, Settings,
};
use antiphon_sandbox::{Network, Policy};
use antiphon_sandboxed::WorkerPorts;
use antiphon_shell::{Environment, Shell};
use serde::{Deserialize, Serialize};

use crate::config::Windows;
use crate::hands;

/// What this binary is told in order to be the worker of a task.
pub(crate) const TASK_WORKER: &str = "__task_worker";

/// How long what runs may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a worker is told. Whatever runs in it can read this: there is nothing secret in it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerSettings {
    pub(crate) root: PathBuf,
    pub(crate) permissions: antiphon_permissions::Config,
    pub(crate) asks: Asks,
    /// Who there is to be called. Calling them is left to whoever started the worker.
    pub(crate) agents: Vec<Callable>,
    pub(crate) prices: PriceTable,
    pub(crate) windows: Windows,
}

/// What becomes of a call that somebody has to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Asks {
    Wait,
    Refuse,
}

impl From<ApprovalPolicy> for Asks {
    fn from(approvals: ApprovalPolicy) -> Self {
        match asking {
            ApprovalPolicy::Wait { .. } => Self::Wait,
            ApprovalPolicy::Refuse => Self::Refuse,
        }
    }
}

/// An agent that can be called.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Callable {
    pub(crate) name: AgentName,
    pub(crate) description: String,
}

/// Works on one task, and ends.
pub(crate) fn main() -> ExitCode {
    antiphon_sandboxed::worker_main(work)
}

async fn work(ports: WorkerPorts) -> Result<(), RunnerError> {
    let WorkerPorts { task_id, settings, journal, provider, cancel, rest } = ports;
    let refuse = |reason: String| RunnerError::Refused { reason };
    let told: WorkerSettings =
        serde_json::from_value(settings).map_err(|error| refuse(error.to_string()))?;
    let tools = tools(&told).map_err(refuse)?;
    let asking = match told.asks {
        Asks::Wait => ApprovalPolicy::Wait { timeout: None },
        Asks::Refuse => ApprovalPolicy::Refuse,
    };
    let orchestrator = Orchestrator::new(RuntimeDeps {
        journal,
        gate: gate(&told, &tools).map_err(refuse)?,
        models: Arc::new(TheModel { provider, windows: told.windows }),
        tools,
        agents: Some(Arc::new(Others(told.agents.into_iter().map(Arc::new).collect()))),
        runners: Vec::new(),
        prices: Arc::new(told.prices),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: Settings { approvals: asking, dispatch: Dispatch::Parent, ..Settings::default() },
    });
    let state = orchestrator.task(&task_id).await.map_err(stopped)?;
    if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
        return Ok(());
    }
    orchestrator.start(&task_id).await.map_err(stopped)?;
    let ended = tokio::select! {
        ended = orchestrator.wait(&task_id) => match ended {
            // At rest, it has calls that only the orchestrator of the runner answers.
            Ok(_) | Err(OrchestratorError::NotRunning { .. }) => Ok(()),
            Err(error) => Err(stopped(error)),
        },
        () = cancel => orchestrator.cancel(&task_id).await.map_err(stopped),
        () = rest => Ok(()),
    };
    orchestrator.shutdown(PATIENCE).await;
    ended
}

fn stopped(error: OrchestratorError) -> RunnerError {
    if let OrchestratorError::Journal(error) = error {
        return RunnerError::Journal(error);
    }
    RunnerError::Unavailable { reason: error.to_string() }
}

/// The tools of a worker: it is restricted already, so commands need no sandbox of their own.
fn tools(told: &WorkerSettings) -> Result<Arc<dyn ToolExecutor>, String> {
    let environment = Environment::choose(std::env::vars_os(), &[], &[]);
    let policy = Policy {
        mode: antiphon_sandbox::Mode::Full,
        roots: vec![told.root.clone()],
        protected: Vec::new(),
        hidden: Vec::new(),
        tmp: "/tmp/commands".into(),
        readable: Vec::new(),
        network: Network::Off,
        limits: antiphon_sandbox::Limits::default(),
    };
    let results = Path::new("/tmp/results");
    let shell = Shell::new(antiphon_shell::Settings {
        worker: hands::worker(),
        policy,
        results: results.to_owned(),
        environment: environment.map_err(|error| error.to_string())?,
    });
    let shell = shell.map_err(|error| error.to_string())?;
    let mode = told.permissions.mode;
    let tools = hands::toolbox(&told.root, results, mode, vec![Arc::new(shell)]);
    Ok(Arc::new(tools.map_err(|failure| failure.to_string())?))
}

fn gate(told: &WorkerSettings, tools: &Arc<dyn ToolExecutor>) -> Result<Arc<dyn Gate>, String> {
    let known = Arc::clone(tools);
    let bounds = Bounds {
        root: told.root.clone(),
        sandboxed: true,
        effects: Effects::new(move |tool| known.effect(tool)),
    };
    let gate = antiphon_permissions::Gate::new(&told.permissions, bounds);
    Ok(Arc::new(gate.map_err(|error| error.to_string())?))
}

/// Everybody is whom the runner asks.
struct TheModel {
    provider: Arc<dyn Provider>,
    windows: Windows,
}

impl Models for TheModel {
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

/// Who there is to be called, as far as a worker has to know: what to offer its model.
struct Others(Vec<Arc<Callable>>);

impl Agents for Others {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.list().into_iter().find(|agent| agent.name.as_str() == name)
    }

    fn list(&self) -> Vec<Arc<AgentDefinition>> {
        let agent = |known: &Arc<Callable>| {
            let description = known.description.clone();
            let definition = AgentDefinition::new(known.name.clone(), String::new());
            Arc::new(AgentDefinition { description, ..definition })
        };
        self.0.iter().map(agent).collect()
    }

    fn system_prompt(&self, own: PromptSource<'_>) -> String {
        match own {
            PromptSource::Named(agent) => agent.context.clone(),
            PromptSource::AdHoc(prompt) => prompt.to_owned(),
        }
    }
}
