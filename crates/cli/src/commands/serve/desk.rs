//! From what a client asks for to a task of this project.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::port::{Agents, Scene, TaskQuery, Which};
use antiphon_core::{
    AgentDefinition, ErrorCode, ErrorResponse, HistoryRef, MayCall, ModelRef, Runtime, SessionId,
    TaskLimits,
};
use antiphon_runtime::{Before, NewTask, Orchestrator, OrchestratorError};
use antiphon_server::{Desk, TaskRequest};
use async_trait::async_trait;

use crate::models::Models;
use crate::prompt::{self, Rules};
use crate::route::Route;

/// Answers of the model after which a task is given up, when nobody says otherwise.
const TURNS: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// Makes tasks of requests.
pub(super) struct ProjectDesk {
    pub(super) orchestrator: Orchestrator,
    pub(super) models: Models,
    pub(super) default_model: ModelRef,
    pub(super) root: PathBuf,
    pub(super) rules: Rules,
    /// Who there is; only the usual agent when absent.
    pub(super) agents: Option<Arc<dyn Agents>>,
}

/// What a task goes on with.
#[derive(Default)]
struct Beginning {
    before: Before,
    model: Option<ModelRef>,
    system_prompt: Option<String>,
}

#[async_trait]
impl Desk for ProjectDesk {
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let definition = request.agent.as_deref().map(|name| self.find(name)).transpose()?;
        let beginning = match &request.session_id {
            Some(session_id) => self.session(session_id).await?,
            None => Beginning { before: Before::Messages(request.history), ..Beginning::default() },
        };
        let named = definition.as_ref().and_then(|agent| agent.model.clone());
        let fallbacks = match (&request.model, &definition) {
            (None, Some(agent)) if agent.model.is_some() => agent.fallbacks.clone(),
            (None | Some(_), None | Some(_)) => Vec::new(),
        };
        let model = request.model.or(named).or(beginning.model);
        let model = model.unwrap_or_else(|| self.default_model.clone());
        self.models
            .provider(&model, &Route::default())
            .map_err(|failure| refusal(ErrorCode::InvalidRequest, failure.to_string()))?;
        let scene = request.system_prompt.or(beginning.system_prompt);
        let system_prompt = match (scene, definition.as_deref(), &self.agents) {
            (None, Some(agent), Some(agents)) => agents.scene(Scene::Named(agent)),
            (scene, _, _) => prompt::system_prompt(scene.as_deref(), &self.root, &self.rules),
        };
        let definition = definition.as_deref();
        Ok(NewTask {
            fallbacks,
            system_prompt,
            tools: narrowed(definition.and_then(|agent| agent.tools.as_ref()), request.tools),
            external_tools: request.external_tools,
            agents: callable(definition, request.agents),
            runner: definition.and_then(runner),
            session_id: request.session_id,
            before: beginning.before,
            limits: limits(definition, request.limits),
            output_schema: request
                .output_schema
                .or_else(|| definition.and_then(|agent| agent.output_schema.clone())),
            ..NewTask::new(request.agent.as_deref().unwrap_or("default"), model, request.message)
        })
    }
}

impl ProjectDesk {
    fn find(&self, name: &str) -> Result<Arc<AgentDefinition>, ErrorResponse> {
        let found = self.agents.as_ref().and_then(|agents| agents.find(name));
        found.ok_or_else(|| refusal(ErrorCode::NotFound, format!("there is no agent `{name}`")))
    }

    /// Goes on with the last task of a session.
    async fn session(&self, session_id: &SessionId) -> Result<Beginning, ErrorResponse> {
        let which = Which::Session(session_id.clone());
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
            before: Before::Task(HistoryRef { task_id: last.task_id, seq: last.seq }),
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
fn narrowed(own: Option<&Vec<String>>, asked: Option<Vec<String>>) -> Option<Vec<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) => {
            Some(asked.into_iter().filter(|name| own.contains(name)).collect())
        }
        (own, asked) => asked.or_else(|| own.cloned()),
    }
}

/// Whom it may call: those that its definition and the client both allow.
fn callable(definition: Option<&AgentDefinition>, asked: Option<Vec<String>>) -> MayCall {
    let own = definition.map_or(MayCall::Anybody, |agent| agent.agents.clone());
    match asked {
        None => own,
        Some(asked) => {
            MayCall::Only(asked.into_iter().filter(|name| own.allows(Some(name))).collect())
        }
    }
}

/// Where it runs: here, if it may.
fn runner(definition: &AgentDefinition) -> Option<antiphon_core::RunnerConfig> {
    match definition.runtimes.first() {
        Some(Runtime::Runner(runner)) => Some(runner.clone()),
        Some(Runtime::Local) | None => None,
    }
}

/// The smaller of each: the client's, and its definition's.
fn limits(definition: Option<&AgentDefinition>, asked: TaskLimits) -> TaskLimits {
    let own = definition.map(|agent| agent.limits).unwrap_or_default();
    TaskLimits {
        turns_max: smaller(own.turns_max, asked.turns_max).or(Some(TURNS)),
        answer_tokens_max: smaller(own.answer_tokens_max, asked.answer_tokens_max),
        tool_calls_max: smaller(own.tool_calls_max, asked.tool_calls_max),
        tokens_max: smaller(own.tokens_max, asked.tokens_max),
        cost_nano_usd_max: smaller(own.cost_nano_usd_max, asked.cost_nano_usd_max),
        wall_clock_s_max: smaller(own.wall_clock_s_max, asked.wall_clock_s_max),
        depth_max: smaller(own.depth_max, asked.depth_max),
        fan_out_max: smaller(own.fan_out_max, asked.fan_out_max),
        tasks_max: smaller(own.tasks_max, asked.tasks_max),
    }
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    [one, other].into_iter().flatten().min()
}
