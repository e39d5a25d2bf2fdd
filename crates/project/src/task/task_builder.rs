//! Builds the task of a request, whichever interface it came from: model, system prompt, tools and limits,
//! from the request, the agent's definition, the conversation it continues, and the project's rules.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::port::{Agents, PromptSource};
use antiphon_core::{
    AgentDefinition, CallableAgents, HistoryRef, ModelRef, RawJson, Session, SessionId, TaskId,
    TaskLimits, Tool, UserMessage,
};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError, PriorHistory};
use chrono::{DateTime, Utc};

use crate::error::ProjectError;
use crate::models::Route;
use crate::prompt_writer::PromptWriter;
use crate::settings::{no_model, scripted};

/// Most turns of a task when neither the request nor the agent sets a limit.
const TURNS_DEFAULT: NonZeroU32 = NonZeroU32::new(1000).unwrap();

/// Agent name of a task without an agent definition.
const DEFAULT_AGENT: &str = "default";

/// A request for a task.
pub struct TaskSpec {
    /// The agent that works on it; the default one when absent.
    pub agent: Option<Arc<AgentDefinition>>,
    /// The requested model; when absent, the agent's, the conversation's or the default one.
    pub model: Option<ModelRef>,
    /// The first message.
    pub message: UserMessage,
    /// The conversation the task continues.
    pub conversation: Conversation,
    /// The system prompt.
    pub system_prompt: SystemPrompt,
    /// Tools the task may use; those of the agent when absent. Narrows the agent's own.
    pub tools: Option<Vec<String>>,
    /// Tools that the client runs itself.
    pub external_tools: Vec<Arc<Tool>>,
    /// Agents the task may call. Narrows the agent's own.
    pub agents: CallableAgents,
    /// Limits. The lower of these and the agent's own applies.
    pub limits: TaskLimits,
    /// JSON Schema of the result; the agent's own when absent.
    pub output_schema: Option<RawJson>,
    /// How the model is reached.
    pub route: Route,
}

impl TaskSpec {
    /// A task with this message and nothing else requested.
    pub fn new(message: UserMessage) -> Self {
        Self {
            agent: None,
            model: None,
            message,
            conversation: Conversation::default(),
            system_prompt: SystemPrompt::Default,
            tools: None,
            external_tools: Vec::new(),
            agents: CallableAgents::Any,
            limits: TaskLimits::default(),
            output_schema: None,
            route: Route::default(),
        }
    }
}

/// The system prompt of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPrompt {
    /// The agent's own, or the default one, with the rules of the project and the environment block.
    Default,
    /// This text with the rules of the project and the environment block.
    Text(String),
    /// This text as it is: it was recorded with a session.
    Recorded(String),
}

/// The conversation a task continues; the default is a new one.
#[derive(Default)]
pub struct Conversation {
    /// Its session; a new one when absent.
    pub session_id: Option<SessionId>,
    /// The messages before the task.
    pub history: PriorHistory,
    /// The model of its last task.
    pub model: Option<ModelRef>,
    /// The system prompt it was recorded with.
    pub system_prompt: Option<String>,
    /// When it began, as its file says.
    pub began: Option<DateTime<Utc>>,
}

impl Conversation {
    /// Continues behind a task of the journal. The caller checks that the task has ended.
    pub async fn after_task(
        orchestrator: &Orchestrator,
        session_id: SessionId,
        last: TaskId,
    ) -> Result<Self, OrchestratorError> {
        let state = orchestrator.task_alone(&last).await?;
        Ok(Self {
            session_id: Some(session_id),
            history: PriorHistory::Task(HistoryRef { task_id: last, seq: state.seq }),
            model: state.created.model,
            system_prompt: Some(state.created.system_prompt),
            began: state.created.imported.map(|times| times.created_at),
        })
    }

    /// Continues a session that was read from a file.
    pub fn of_session(session: Session) -> Self {
        let session = session.with_hidden_text_escaped();
        Self {
            session_id: Some(session.id),
            history: PriorHistory::Messages(session.messages),
            model: None,
            system_prompt: Some(session.system_prompt),
            began: Some(session.created_at),
        }
    }
}

/// Builds tasks of a project.
pub struct TaskBuilder<'a> {
    /// Selects the runner of an agent.
    pub orchestrator: &'a Orchestrator,
    /// The agents of the project.
    pub agents: &'a dyn Agents,
    /// The model of a task that names none, if there is one.
    pub default_model: Option<&'a ModelRef>,
    /// Writes the system prompts.
    pub prompts: &'a PromptWriter,
}

impl TaskBuilder<'_> {
    /// The model of a task, if there is one: the requested one, the agent's, the conversation's, or the default one.
    pub fn model(&self, spec: &TaskSpec) -> Option<ModelRef> {
        let of_agent = || spec.agent.as_ref().and_then(|agent| agent.model.clone());
        let model =
            spec.model.clone().or_else(of_agent).or_else(|| spec.conversation.model.clone());
        model.or_else(|| self.default_model.cloned())
    }

    /// The same, or an error that says what to do. An agent that calls no model from here, such as a program in a
    /// terminal, needs none; the journal then names the built-in script.
    fn required_model(&self, spec: &TaskSpec) -> Result<ModelRef, ProjectError> {
        if let Some(model) = self.model(spec) {
            return Ok(model);
        }
        let runtimes = spec.agent.as_ref().map(|agent| agent.runtimes.as_slice());
        let runner = runtimes.and_then(|it| self.orchestrator.choose_runner(it).ok().flatten());
        match runner {
            Some(runner) if !self.orchestrator.calls_model(&runner) => Ok(scripted()),
            Some(_) | None => Err(no_model()),
        }
    }

    /// Builds the task. Fails when no runner can run the agent.
    pub fn build(&self, spec: TaskSpec) -> Result<NewTask, ProjectError> {
        let model = self.required_model(&spec)?;
        let requested_model = model.clone();
        // The agent's fallbacks belong to the agent's own model.
        let fallbacks = match (&spec.agent, &spec.model) {
            (Some(agent), None) => agent.fallbacks.clone(),
            (Some(_) | None, _) => Vec::new(),
        };
        let requested_prompt = match spec.system_prompt {
            SystemPrompt::Default => None,
            SystemPrompt::Text(text) => Some(self.prompts.of_text(&text)),
            SystemPrompt::Recorded(text) => Some(text),
        };
        let task = NewTask {
            fallbacks,
            tools: spec.tools,
            external_tools: spec.external_tools,
            agents: spec.agents,
            session_id: spec.conversation.session_id,
            before: spec.conversation.history,
            limits: spec.limits,
            output_schema: spec.output_schema,
            route: spec.route.to_json(),
            ..NewTask::new(DEFAULT_AGENT, model, spec.message)
        };
        let task = match spec.agent {
            None => {
                let default = || self.prompts.default_prompt(&requested_model);
                NewTask { system_prompt: requested_prompt.unwrap_or_else(default), ..task }
            }
            Some(agent) => self.for_agent(task, &agent, requested_prompt)?,
        };
        let turns_max = task.limits.turns_max.or(Some(TURNS_DEFAULT));
        Ok(NewTask { limits: TaskLimits { turns_max, ..task.limits }, ..task })
    }

    /// Applies the agent's definition: the task gets what both the request and the definition allow.
    fn for_agent(
        &self,
        task: NewTask,
        agent: &AgentDefinition,
        requested_prompt: Option<String>,
    ) -> Result<NewTask, ProjectError> {
        let runner = self.orchestrator.choose_runner(&agent.runtimes).map_err(|reason| {
            ProjectError::InvalidInput(format!("no runner can run `{}`: {reason}", agent.name))
        })?;
        let own_prompt = || self.agents.system_prompt(PromptSource::Named(agent));
        Ok(NewTask {
            agent: agent.name.to_string(),
            system_prompt: requested_prompt.unwrap_or_else(own_prompt),
            tools: common_tools(agent.tools.as_ref(), task.tools.as_ref()),
            parallel_tools: agent.parallel_tools.clone(),
            agents: common_agents(&agent.agents, &task.agents),
            runner,
            limits: lower(task.limits, agent.limits),
            output_schema: task.output_schema.or_else(|| agent.output_schema.clone()),
            ..task
        })
    }
}

/// The tools that both name; when only one names tools, these.
fn common_tools(own: Option<&Vec<String>>, requested: Option<&Vec<String>>) -> Option<Vec<String>> {
    match (own, requested) {
        (Some(own), Some(requested)) => {
            Some(requested.iter().filter(|name| own.contains(name)).cloned().collect())
        }
        (own, requested) => requested.or(own).cloned(),
    }
}

/// The agents that both allow to call.
fn common_agents(own: &CallableAgents, requested: &CallableAgents) -> CallableAgents {
    match requested {
        CallableAgents::Any => own.clone(),
        CallableAgents::Only(requested) => {
            let both = requested.iter().filter(|name| own.allows(Some(name.as_str())));
            CallableAgents::Only(both.cloned().collect())
        }
    }
}

/// The lower of each limit.
fn lower(requested: TaskLimits, own: TaskLimits) -> TaskLimits {
    fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
        [one, other].into_iter().flatten().min()
    }
    TaskLimits {
        turns_max: least(requested.turns_max, own.turns_max),
        answer_tokens_max: least(requested.answer_tokens_max, own.answer_tokens_max),
        tool_calls_max: least(requested.tool_calls_max, own.tool_calls_max),
        tokens_max: least(requested.tokens_max, own.tokens_max),
        cost_nano_usd_max: least(requested.cost_nano_usd_max, own.cost_nano_usd_max),
        wall_clock_s_max: least(requested.wall_clock_s_max, own.wall_clock_s_max),
        depth_max: least(requested.depth_max, own.depth_max),
        fan_out_max: least(requested.fan_out_max, own.fan_out_max),
        tasks_max: least(requested.tasks_max, own.tasks_max),
    }
}
