//! From what a client asks for to a task of this project.

mod definitions;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::port::{Agents, PromptSource, TaskQuery, TaskSelector};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, ErrorResponse, HistoryRef, ModelRef,
    SessionId, TaskLimits,
};
use antiphon_project::{AgentChange, DefinedAgent, TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError, PriorHistory};
use async_trait::async_trait;

use crate::models::Models;
use crate::prompt::{self, Rules};
use crate::role;
use crate::route::Route;
use crate::shelf::AgentFiles;

/// Answers of the model after which a task is given up, when nobody says otherwise.
const TURNS: NonZeroU32 = NonZeroU32::new(1000).unwrap();

/// Makes tasks of requests.
pub(crate) struct ProjectTaskFactory {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) models: Models,
    pub(crate) default_model: ModelRef,
    pub(crate) root: PathBuf,
    pub(crate) rules: Rules,
    pub(crate) shelf: AgentFiles,
}

/// What a task goes on with.
#[derive(Default)]
struct Beginning {
    before: PriorHistory,
    model: Option<ModelRef>,
    system_prompt: Option<String>,
}

#[async_trait]
impl TaskFactory for ProjectTaskFactory {
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let agent = request.agent.as_deref().map(|name| self.find(name)).transpose()?;
        let beginning = match &request.session_id {
            Some(session_id) => self.session(session_id).await?,
            None => Beginning {
                before: PriorHistory::Messages(request.history),
                ..Beginning::default()
            },
        };
        let fallbacks = match (&agent, &request.model) {
            (Some(agent), None) => agent.fallbacks.clone(),
            (Some(_) | None, _) => Vec::new(),
        };
        let own = agent.as_ref().and_then(|agent| agent.model.clone());
        let model = request.model.or(own).or(beginning.model);
        let model = model.unwrap_or_else(|| self.default_model.clone());
        self.models
            .provider(&model, &Route::default())
            .map_err(|failure| refusal(ErrorCode::InvalidRequest, failure.to_string()))?;
        let system_prompt = request.system_prompt.or(beginning.system_prompt);
        let told = prompt::system_prompt(system_prompt.as_deref(), &self.root, &self.rules);
        let task = NewTask {
            fallbacks,
            system_prompt: told.clone(),
            tools: request.tools,
            external_tools: request.external_tools,
            agents: request.agents.map_or(CallableAgents::Any, CallableAgents::Only),
            session_id: request.session_id,
            before: beginning.before,
            limits: request.limits,
            output_schema: request.output_schema,
            ..NewTask::new("default", model, request.message)
        };
        let task = match agent {
            None => task,
            Some(agent) => self.taken_on(task, &agent, system_prompt.map(|_| told))?,
        };
        let turns_max = task.limits.turns_max.or(Some(TURNS));
        Ok(NewTask { limits: TaskLimits { turns_max, ..task.limits }, ..task })
    }

    fn agents(&self) -> Vec<AgentName> {
        self.shelf.agents.list().iter().map(|agent| agent.name.clone()).collect()
    }

    fn models(&self) -> Vec<ModelRef> {
        let mut models = vec![self.default_model.clone()];
        for agent in self.shelf.agents.list() {
            let own = agent.model.iter().chain(&agent.fallbacks);
            for model in own {
                if !models.contains(model) {
                    models.push(model.clone());
                }
            }
        }
        models
    }

    fn system_prompt(&self, prompt: &str) -> String {
        self.shelf.agents.system_prompt(PromptSource::AdHoc(prompt))
    }

    fn defined(&self) -> Vec<DefinedAgent> {
        self.shelf.agents.entries().into_iter().map(definitions::defined).collect()
    }

    async fn create_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        definitions::create(&self.shelf, name, change).await
    }

    async fn change_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        definitions::change(&self.shelf, name, change).await
    }

    async fn delete_agent(&self, name: &AgentName) -> Result<(), ErrorResponse> {
        definitions::delete(&self.shelf, name).await
    }
}

impl ProjectTaskFactory {
    fn find(&self, name: &str) -> Result<Arc<AgentDefinition>, ErrorResponse> {
        let none = || refusal(ErrorCode::NotFound, format!("there is no agent `{name}`"));
        self.shelf.agents.find(name).ok_or_else(none)
    }

    /// The task as its agent takes it on: it has what both the agent and the client allow, and the
    /// scene that the client told, if it told one.
    fn taken_on(
        &self,
        task: NewTask,
        agent: &AgentDefinition,
        told: Option<String>,
    ) -> Result<NewTask, ErrorResponse> {
        let tools = narrowed(agent.tools.as_ref(), task.tools.as_ref());
        let agents = callable(&agent.agents, &task.agents);
        let taken = role::taken_on(task, agent, &*self.shelf.agents, &self.orchestrator);
        let taken = taken.map_err(|reason| refusal(ErrorCode::InvalidRequest, reason))?;
        let system_prompt = told.unwrap_or(taken.system_prompt);
        Ok(NewTask { tools, agents, system_prompt, ..taken })
    }

    /// Goes on with the last task of a session.
    async fn session(&self, session_id: &SessionId) -> Result<Beginning, ErrorResponse> {
        let which = TaskSelector::Session(session_id.clone());
        let query = TaskQuery { which, limit: NonZeroUsize::MIN };
        let last = self.orchestrator.tasks(query).await.map_err(|error| unavailable(&error))?;
        let Some(last) = last.into_iter().next() else {
            let message = format!("there is no session `{session_id}`");
            return Err(refusal(ErrorCode::NotFound, message));
        };
        if !last.status.is_terminal() {
            let message = format!("its last task has not ended: {}", last.task_id);
            return Err(refusal(ErrorCode::Conflict, message));
        }
        let state = self.orchestrator.task(&last.task_id).await;
        let created = state.map_err(|error| unavailable(&error))?.created;
        Ok(Beginning {
            before: PriorHistory::Task(HistoryRef { task_id: last.task_id, seq: last.seq }),
            model: created.model,
            system_prompt: Some(created.system_prompt),
        })
    }
}

fn refusal(code: ErrorCode, message: String) -> ErrorResponse {
    ErrorResponse { code, message, details: None }
}

fn unavailable(error: &OrchestratorError) -> ErrorResponse {
    refusal(ErrorCode::ServiceUnavailable, error.to_string())
}

/// What both allow; what only one of them names is what that one allows.
fn narrowed(own: Option<&Vec<String>>, asked: Option<&Vec<String>>) -> Option<Vec<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) => {
            Some(asked.iter().filter(|name| own.contains(name)).cloned().collect())
        }
        (own, asked) => asked.or(own).cloned(),
    }
}

/// Whom both let it call.
fn callable(own: &CallableAgents, asked: &CallableAgents) -> CallableAgents {
    match asked {
        CallableAgents::Any => own.clone(),
        CallableAgents::Only(asked) => {
            let both = asked.iter().filter(|name| own.allows(Some(name.as_str())));
            CallableAgents::Only(both.cloned().collect())
        }
    }
}
