//! What the model of an agent gets as its first request, without a task of the project: a task in a journal of its own
//! makes the request as any other does, and ends before a model is called.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::port::{Clock as _, RandomIds, SystemClock};
use antiphon_core::{ModelRef, PieceSource, Provider, RawJson, Request, UserMessage};
use antiphon_runtime::{
    Models, NewTask, Orchestrator, OrchestratorSettings, RuntimeDeps, TaskEnvironment,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use futures_util::stream;
use tokio::sync::oneshot;

use crate::agent_files::find_entry;
use crate::error::ProjectError;
use crate::project::{JOURNAL, Project};
use crate::settings::UserSettings;
use crate::task::process_environment::ProcessEnvironment;
use crate::task::task_builder::{TaskBuilder, TaskSpec};
use crate::task::task_process::TaskProcess;

/// How long the task may take to make its request.
const REQUEST_WAIT: Duration = Duration::from_secs(30);

/// How long the task may take to end.
const END_WAIT: Duration = Duration::from_secs(5);

/// What the model of an agent gets first.
pub struct FirstRequest {
    /// Name of the agent.
    pub agent: String,
    /// The model.
    pub model: ModelRef,
    /// The request, with `message` as its only message.
    pub request: Request,
}

/// The first request of a task of `agent`, or of one without an agent, in a process of the user. MCP servers are not
/// started, so their tools are not in it.
pub async fn first_request(
    project: &Project,
    settings: UserSettings,
    process: &TaskProcess,
    (agent, model): (Option<&str>, Option<ModelRef>),
    message: &str,
) -> Result<FirstRequest, ProjectError> {
    let environment = ProcessEnvironment::build(project, settings, process, None)?;
    let failed = |error: std::io::Error| ProjectError::Failed(error.to_string());
    let folder = tempfile::tempdir().map_err(failed)?;
    let journal = SqliteJournal::open(&folder.path().join(JOURNAL), SyncPolicy::Full)?;
    let (sender, received) = oneshot::channel();
    let models = Arc::new(RequestCapture(Arc::new(Mutex::new(Some(sender)))));
    let orchestrator = Orchestrator::new(deps(journal, &environment, models));
    let task = task(&orchestrator, &environment, (agent, model), message);
    let first = match task {
        Ok(task) => capture(&orchestrator, task, received).await,
        Err(error) => Err(error),
    };
    orchestrator.shutdown(END_WAIT).await;
    first
}

fn task(
    orchestrator: &Orchestrator,
    environment: &ProcessEnvironment,
    (agent, model): (Option<&str>, Option<ModelRef>),
    message: &str,
) -> Result<NewTask, ProjectError> {
    let agent = agent.map(|name| find_entry(&environment.catalog, name)).transpose()?;
    let default_model = environment.settings().default_model();
    let builder = TaskBuilder {
        orchestrator,
        agents: &*environment.catalog,
        default_model: default_model.model(),
        prompts: &environment.prompts,
    };
    let spec = TaskSpec {
        agent: agent.map(|entry| entry.definition),
        model,
        ..TaskSpec::new(UserMessage::text(message.to_owned(), SystemClock.now()))
    };
    let task = builder.build(spec)?;
    match &task.runner {
        // The worker of the sandbox makes the same request.
        Some(runner) if runner.kind != "sandbox" => Err(ProjectError::InvalidInput(format!(
            "`{}` runs in the runner `{}`, which makes its own requests: its context is in `antiphon agents show {}`",
            task.agent, runner.kind, task.agent
        ))),
        Some(_) | None => Ok(NewTask { runner: None, ..task }),
    }
}

async fn capture(
    orchestrator: &Orchestrator,
    task: NewTask,
    received: oneshot::Receiver<Request>,
) -> Result<FirstRequest, ProjectError> {
    let (agent, model) = (task.agent.clone(), task.model.clone());
    let accepted = orchestrator.invoke(task).await?;
    let request = tokio::time::timeout(REQUEST_WAIT, received).await;
    orchestrator.cancel(&accepted.task_id).await?;
    match request {
        Ok(Ok(request)) => Ok(FirstRequest { agent, model, request }),
        Ok(Err(_)) | Err(_) => {
            Err(ProjectError::Failed("the task made no request: try again".to_owned()))
        }
    }
}

fn deps(
    journal: SqliteJournal,
    environment: &ProcessEnvironment,
    models: Arc<RequestCapture>,
) -> RuntimeDeps {
    let TaskEnvironment { tools, gate, agents, runners, approvals, .. } =
        (*environment.task).clone();
    RuntimeDeps {
        journal: Arc::new(journal),
        models,
        tools,
        gate,
        agents,
        runners,
        prices: Arc::new(environment.settings().prices.clone()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings { approvals, ..OrchestratorSettings::default() },
    }
}

/// Every model: it keeps the first request and never answers.
struct RequestCapture(RequestSlot);

impl Models for RequestCapture {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(SilentModel(Arc::clone(&self.0))))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct SilentModel(RequestSlot);

/// Takes the first request.
type RequestSlot = Arc<Mutex<Option<oneshot::Sender<Request>>>>;

impl Provider for SilentModel {
    fn open(&self, request: Request) -> PieceSource {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The receiver may have stopped waiting.
            let _ = sender.send(request);
        }
        Box::pin(stream::pending())
    }
}
