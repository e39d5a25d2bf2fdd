//! Implements the task factory of the HTTP interfaces and the file drop for a project.

mod definitions;
mod run;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{AgentChange, AgentProblem, RunStarted, StartRun};
use antiphon_core::port::{Agents, IdempotencyKey, PromptSource, TaskQuery, TaskSelector};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, ErrorResponse, ModelRef, SessionId,
};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError, PriorHistory};
use async_trait::async_trait;

use crate::agent_files::AgentFiles;
use crate::error::{ProjectError, STOPPING};
use crate::models::{Models, Route};
use crate::project::own_tools::OwnTools;
use crate::prompt_writer::PromptWriter;
use crate::reports::agent_detail::agent_problems;
use crate::reports::presence::unknown_agent;
use crate::request::task_factory::{DefinedAgent, TaskFactory};
use crate::request::task_request::TaskRequest;
use crate::request::tool_names::{check_tools, check_tools_of_agent};
use crate::task::environments::ProjectEnvironments;
use crate::task::task_builder::{Conversation, SystemPrompt, TaskBuilder, TaskSpec};
use crate::task::task_process::TaskProcess;

/// Builds tasks of clients' requests, and changes agent definitions for them.
pub struct ProjectTaskFactory {
    orchestrator: Orchestrator,
    /// Only checks that a model can be reached; the orchestrator asks the model.
    models: Arc<Models>,
    default_model: Option<ModelRef>,
    prompts: Arc<PromptWriter>,
    files: AgentFiles,
    environments: Option<Arc<ProjectEnvironments>>,
    /// Tools that new tasks wait for.
    tools: Option<Arc<OwnTools>>,
}

impl ProjectTaskFactory {
    /// A factory for the tasks of `orchestrator`.
    pub fn new(
        orchestrator: &Orchestrator,
        models: Arc<Models>,
        prompts: Arc<PromptWriter>,
        files: AgentFiles,
    ) -> Self {
        Self {
            orchestrator: orchestrator.clone(),
            default_model: models.settings().default_model().model().cloned(),
            models,
            prompts,
            files,
            environments: None,
            tools: None,
        }
    }

    /// The same, which takes tasks of other processes of the user.
    #[must_use]
    pub fn with_environments(self, environments: Arc<ProjectEnvironments>) -> Self {
        Self { environments: Some(environments), ..self }
    }

    /// The same, whose new tasks wait for these tools.
    #[must_use]
    pub(crate) fn with_tools(self, tools: Option<Arc<OwnTools>>) -> Self {
        Self { tools, ..self }
    }

    async fn tools_ready(&self) {
        if let Some(tools) = &self.tools {
            tools.ready().await;
        }
    }
}

#[async_trait]
impl TaskFactory for ProjectTaskFactory {
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        self.tools_ready().await;
        let named = request.tools.iter().flatten();
        check_tools(&self.orchestrator, &request.external_tools, named)?;
        let agent = request.agent.as_deref().map(|name| self.find(name)).transpose()?;
        let conversation = match request.session_id {
            Some(session_id) => self.session(session_id).await?,
            None => Conversation {
                history: PriorHistory::Messages(request.history),
                ..Conversation::default()
            },
        };
        let system_prompt = match (request.system_prompt, &conversation.system_prompt) {
            (Some(text), _) => SystemPrompt::Text(text),
            (None, Some(recorded)) => SystemPrompt::Recorded(recorded.clone()),
            (None, None) => SystemPrompt::Default,
        };
        let spec = TaskSpec {
            agent,
            model: request.model,
            conversation,
            system_prompt,
            tools: request.tools,
            external_tools: request.external_tools,
            agents: request.agents.map_or(CallableAgents::Any, CallableAgents::Only),
            limits: request.limits,
            output_schema: request.output_schema,
            route: Route { process: self.recorded_process(), ..Route::default() },
            ..TaskSpec::new(request.message)
        };
        let builder = TaskBuilder {
            orchestrator: &self.orchestrator,
            agents: &*self.files.catalog,
            default_model: self.default_model.as_ref(),
            prompts: &self.prompts,
        };
        if let Some(model) = builder.model(&spec) {
            self.models.provider(&model, &Route::default()).map_err(invalid)?;
        }
        builder.build(spec).map_err(invalid)
    }

    async fn start_run(
        &self,
        run: StartRun,
        key: Option<IdempotencyKey>,
    ) -> Result<RunStarted, ErrorResponse> {
        run::start(self, run, key).await.map_err(invalid)
    }

    fn watch_requests(&self) {
        if let Some(environments) = &self.environments {
            environments.project().requests_wanted().cancel();
        }
    }

    fn hand_over(&self) -> Result<(), ErrorResponse> {
        let asked =
            self.environments.as_ref().is_some_and(|environments| environments.ask_to_leave());
        if asked {
            return Ok(());
        }
        let message = format!("a server runs here already: process {}", std::process::id());
        Err(refusal(ErrorCode::Conflict, message))
    }

    fn agents(&self) -> Vec<AgentName> {
        self.files.catalog.list().iter().map(|agent| agent.name.clone()).collect()
    }

    fn models(&self) -> Vec<ModelRef> {
        let mut models: Vec<ModelRef> = self.default_model.iter().cloned().collect();
        for agent in self.files.catalog.list().iter() {
            let own = agent.model.iter().chain(&agent.fallbacks);
            for model in own {
                if !models.contains(model) {
                    models.push(model.clone());
                }
            }
        }
        models
    }

    fn alias(&self, name: &str) -> Option<String> {
        self.models.settings().aliases.find(name).map(str::to_owned)
    }

    fn aliases(&self) -> Vec<String> {
        self.models.settings().aliases.names().map(str::to_owned).collect()
    }

    fn system_prompt(&self, prompt: &str) -> String {
        self.files.catalog.system_prompt(PromptSource::AdHoc(prompt))
    }

    fn defined(&self) -> Vec<DefinedAgent> {
        self.files.catalog.entries().into_iter().map(DefinedAgent::from).collect()
    }

    fn problems(&self) -> Vec<AgentProblem> {
        agent_problems(&self.files.catalog)
    }

    async fn create_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        self.check_tools_of(&change)?;
        definitions::create(&self.files, name, change).await
    }

    async fn change_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        self.check_tools_of(&change)?;
        definitions::change(&self.files, name, change).await
    }

    async fn delete_agent(&self, name: &AgentName) -> Result<(), ErrorResponse> {
        definitions::delete(&self.files, name).await
    }
}

impl ProjectTaskFactory {
    fn recorded_process(&self) -> Option<TaskProcess> {
        self.environments.as_ref().and_then(|environments| environments.recorded())
    }

    /// Other types than names are refused when the definition is read.
    fn check_tools_of(&self, change: &AgentChange) -> Result<(), ErrorResponse> {
        let listed = change.tools.as_ref().and_then(|tools| tools.as_array());
        let texts = listed.into_iter().flatten().filter_map(|name| name.as_str());
        let names: Vec<String> = texts.map(|name| name.trim().to_owned()).collect();
        check_tools_of_agent(&self.orchestrator, &names)
    }

    fn find(&self, name: &str) -> Result<Arc<AgentDefinition>, ErrorResponse> {
        let none = || refusal(ErrorCode::NotFound, unknown_agent(name, &self.agents()).to_string());
        self.files.catalog.find(name).ok_or_else(none)
    }

    /// Continues behind the last task of a session, which must have ended.
    async fn session(&self, session_id: SessionId) -> Result<Conversation, ErrorResponse> {
        let which = TaskSelector::Session(session_id.clone());
        let query = TaskQuery { which, limit: NonZeroUsize::MIN };
        let last = self.orchestrator.tasks(query).await.map_err(|error| unavailable(&error))?;
        let Some(last) = last.into_iter().next() else {
            return Err(no_session(&session_id));
        };
        if !last.status.is_terminal() {
            let message = format!("its last task has not ended: {}", last.task_id);
            return Err(refusal(ErrorCode::Conflict, message));
        }
        let conversation = Conversation::after_task(&self.orchestrator, session_id, last.task_id);
        conversation.await.map_err(|error| unavailable(&error))
    }
}

/// The refusal to continue a session that does not exist.
pub fn no_session(session_id: &SessionId) -> ErrorResponse {
    refusal(ErrorCode::NotFound, format!("there is no session `{session_id}`"))
}

fn invalid(error: ProjectError) -> ErrorResponse {
    let code = match error {
        ProjectError::Refused(_) => ErrorCode::Forbidden,
        ProjectError::OwnerEnds(message) => {
            let cause = ("cause".to_owned(), STOPPING.to_owned());
            let details = Some(BTreeMap::from([cause]));
            return ErrorResponse { code: ErrorCode::ServiceUnavailable, message, details };
        }
        ProjectError::Unavailable(_) => ErrorCode::ServiceUnavailable,
        ProjectError::InvalidInput(_) => ErrorCode::InvalidRequest,
        ProjectError::Failed(_) => ErrorCode::InternalError,
    };
    refusal(code, error.to_string())
}

fn refusal(code: ErrorCode, message: String) -> ErrorResponse {
    ErrorResponse { code, message, details: None }
}

fn unavailable(error: &OrchestratorError) -> ErrorResponse {
    refusal(ErrorCode::ServiceUnavailable, error.to_string())
}
