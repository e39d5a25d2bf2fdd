//! The environment of a task: models, tools, permissions, agents and runners, as the process that asked for it would
//! have built them.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon_agent_files::AgentCatalog;
use antiphon_core::port::{Agents, Clock, SystemClock};
use antiphon_core::redaction::Secrets;
use antiphon_core::{
    AgentDefinition, AgentName, ModelRef, Provenance, TaskAccess, TaskCreated, UserMessage,
};
use antiphon_runtime::{NewTask, Orchestrator, TaskEnvironment};
use tokio::sync::mpsc;

use crate::agent_files::find_entry;
use crate::error::ProjectError;
use crate::instruction_files::InstructionFiles;
use crate::models::{Models, Route};
use crate::project::Project;
use crate::project::own_tools::OwnTools;
use crate::project_agents::ProjectAgents;
use crate::prompt_writer::PromptWriter;
use crate::request::user_input::parse_blocks;
use crate::settings::{DefaultModel, UserSettings, scripted};
use crate::task::run_request::{RunRequest, RunSession};
use crate::task::task_builder::{Conversation, SystemPrompt, TaskBuilder, TaskSpec};
use crate::task::task_process::TaskProcess;
use crate::toolset::{Toolset, UsedServers};

/// What the tasks of one process work with.
pub struct ProcessEnvironment {
    /// What the runtime uses of it.
    pub task: Arc<TaskEnvironment>,
    /// The agents of the project, with the rules of the process.
    pub catalog: Arc<AgentCatalog>,
    /// Writes the system prompts, with the rules of the process.
    pub prompts: Arc<PromptWriter>,
    /// Secrets that are redacted from tool results; more can be added.
    pub secrets: Secrets,
    pub(crate) models: Arc<Models>,
    removed: Mutex<Option<mpsc::Receiver<AgentName>>>,
    /// Follows the agents' files until it is dropped.
    _agents: ProjectAgents,
    /// Tools that new tasks wait for.
    connecting: Option<Arc<OwnTools>>,
}

impl ProcessEnvironment {
    /// Builds what the tasks of a process work with. `mcp` are the MCP servers that are connected.
    pub fn build(
        project: &Project,
        settings: UserSettings,
        process: &TaskProcess,
        mcp: Option<Arc<UsedServers>>,
    ) -> Result<Self, ProjectError> {
        let overrides = process.overrides();
        let toolset = Toolset::with_servers(project, &settings, &overrides, mcp)?;
        let toolset = toolset.with_approvals(process.approvals());
        let rules = match (&process.folder, process.no_rules) {
            (_, true) => InstructionFiles::default(),
            (Some(folder), false) => project.rules_down_to(folder, &settings),
            (None, false) => project.rules(&settings),
        };
        let mut agents = ProjectAgents::of(project, &settings, &overrides, &toolset, &rules)?;
        let removed = std::mem::replace(&mut agents.removed, mpsc::channel(1).1);
        let catalog = Arc::clone(&agents.agents);
        let models = Models::new(settings).expecting(process.providers.clone());
        let models = Arc::new(models);
        let task = TaskEnvironment {
            models: Arc::clone(&models) as _,
            tools: toolset.tools,
            gate: toolset.gate,
            agents: Some(Arc::clone(&catalog) as Arc<dyn Agents>),
            runners: agents.runners.clone(),
            approvals: toolset.approvals,
        };
        Ok(Self {
            task: Arc::new(task),
            catalog,
            prompts: Arc::clone(&agents.prompts),
            secrets: toolset.secrets,
            models,
            removed: Mutex::new(Some(removed)),
            connecting: None,
            _agents: agents,
        })
    }

    /// The same, whose new tasks wait for these tools.
    #[must_use]
    pub(crate) fn with_tools(self, connecting: Option<Arc<OwnTools>>) -> Self {
        Self { connecting, ..self }
    }

    /// Waits until the tools are there that a new task may need.
    pub(crate) async fn tools_ready(&self) {
        if let Some(tools) = &self.connecting {
            tools.ready().await;
        }
    }

    /// The settings it was built from.
    pub fn settings(&self) -> &UserSettings {
        self.models.settings()
    }

    /// Whether the model of a task can be called with it.
    pub(crate) fn reaches_model(&self, task: &TaskCreated) -> bool {
        let Some(model) = &task.model else { return true };
        self.task.models.provider(model, &task.fallbacks, task.route.as_ref()).is_ok()
    }

    /// Names of agents whose definitions were removed, as it happens. Only the first caller gets them.
    pub fn take_removed(&self) -> mpsc::Receiver<AgentName> {
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner).take();
        removed.unwrap_or_else(|| mpsc::channel(1).1)
    }

    /// Builds a task of the process. Everything in the request is checked.
    pub(crate) async fn task(
        &self,
        orchestrator: &Orchestrator,
        request: RunRequest,
    ) -> Result<NewTask, ProjectError> {
        let agent = request.agent.as_deref().map(|name| find_entry(&self.catalog, name));
        let agent = agent.transpose()?.map(|entry| entry.definition);
        self.check_model(&request, agent.as_deref())?;
        let message = message(&request)?;
        let access = access(&request)?;
        let provenance = match &request.source {
            None => Provenance::Owner,
            Some(source) => Provenance::Event(source.to_string()),
        };
        let conversation = conversation(orchestrator, request.session).await?;
        let system_prompt = match (request.system, &conversation.system_prompt) {
            (_, Some(recorded)) => SystemPrompt::Recorded(recorded.clone()),
            (Some(text), None) => SystemPrompt::Text(text),
            (None, None) => SystemPrompt::Default,
        };
        let default_model = self.default_model(&request.route);
        let began = conversation.began.filter(|_| request.route.save.is_some());
        let spec = TaskSpec {
            agent,
            model: request.model,
            conversation,
            system_prompt,
            limits: request.limits,
            output_schema: request.output_schema,
            route: Route { began, ..request.route },
            ..TaskSpec::new(message)
        };
        let builder = TaskBuilder {
            orchestrator,
            agents: &*self.catalog,
            default_model: default_model.as_ref(),
            prompts: &self.prompts,
        };
        let task = builder.build(spec)?;
        let message = task.message.filter(|_| access != TaskAccess::CompactOnly);
        Ok(NewTask { provenance, access, message, ..task })
    }

    /// The model of a task that names none. A script or a recording answers in place of a model that the user did not choose.
    fn default_model(&self, route: &Route) -> Option<ModelRef> {
        let default = self.settings().default_model();
        let is_offline = route.script.is_some() || route.replay.is_some();
        match default {
            DefaultModel::Chosen(model) => Some(model),
            DefaultModel::OfKey(_) | DefaultModel::OfSeveralKeys { .. } | DefaultModel::Absent
                if is_offline =>
            {
                Some(scripted())
            }
            DefaultModel::OfKey(_) | DefaultModel::OfSeveralKeys { .. } | DefaultModel::Absent => {
                default.model().cloned()
            }
        }
    }

    /// Checks that the model can be reached. A session without a requested model brings its own, which the
    /// orchestrator checks.
    fn check_model(
        &self,
        request: &RunRequest,
        agent: Option<&AgentDefinition>,
    ) -> Result<(), ProjectError> {
        let of_agent = || agent.and_then(|agent| agent.model.clone());
        let model: Option<ModelRef> = request.model.clone().or_else(of_agent);
        let is_continued =
            matches!(request.session, Some(RunSession::File(_) | RunSession::Stored { .. }));
        if is_continued && model.is_none() {
            return Ok(());
        }
        let Some(model) = model.or_else(|| self.default_model(&request.route)) else {
            return Ok(());
        };
        // Agents that the task calls may have other models, which the script does not concern.
        if request.route.script.is_some() && model.provider() != "scripted" {
            let message = "--script goes with a `scripted/…` model".to_owned();
            return Err(ProjectError::InvalidInput(message));
        }
        self.models.provider(&model, &request.route).map(drop)
    }
}

/// The first message: the prompt, or its blocks.
/// What the task may do within its permissions.
fn access(request: &RunRequest) -> Result<TaskAccess, ProjectError> {
    match (request.compact, request.plan) {
        (true, _) if request.session.is_none() => Err(ProjectError::InvalidInput(
            "there is no conversation to shorten: name one".to_owned(),
        )),
        (true, _) => Ok(TaskAccess::CompactOnly),
        (false, true) => Ok(TaskAccess::PlanFirst),
        (false, false) => Ok(TaskAccess::Permitted),
    }
}

fn message(request: &RunRequest) -> Result<UserMessage, ProjectError> {
    let Some(blocks) = &request.blocks else {
        return Ok(UserMessage::text(request.prompt.clone(), SystemClock.now()));
    };
    let blocks = serde_json::from_str(blocks.as_str());
    let blocks = blocks.map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    let content = parse_blocks("blocks", blocks)?;
    Ok(UserMessage { content, timestamp: SystemClock.now() })
}

async fn conversation(
    orchestrator: &Orchestrator,
    session: Option<RunSession>,
) -> Result<Conversation, ProjectError> {
    match session {
        None => Ok(Conversation::default()),
        Some(RunSession::New { session_id }) => {
            Ok(Conversation { session_id: Some(session_id), ..Conversation::default() })
        }
        Some(RunSession::File(path)) => {
            let session = antiphon_session_file::load(&path);
            let session = session.map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
            Ok(Conversation::of_session(session))
        }
        Some(RunSession::Stored { session_id, last_task }) => {
            Ok(Conversation::after_task(orchestrator, session_id, last_task).await?)
        }
    }
}
