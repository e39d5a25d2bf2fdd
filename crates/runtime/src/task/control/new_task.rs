//! A task to be accepted, and a conversation to be imported.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, TaskQuery, TaskSelector};
use antiphon_core::{
    CallableAgents, CanonicalHeader, EventBody, HistoryRef, ImportedTimes, Message,
    MessageAppended, ModelOptions, ModelRef, Provenance, RawJson, RunnerConfig, SessionId,
    StatusChanged, TaskAccess, TaskCreated, TaskId, TaskLimits, TaskStatus, Tool, ToolCallBlock,
    UserMessage,
};
use serde_json::Value;

use crate::dispatch::external_tools;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::limits::LimitReached;
use crate::task::step::output;
use crate::task::step::tools;

/// A task to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Name of the agent that works on it.
    pub agent: String,
    /// Model that the agent calls.
    pub model: ModelRef,
    /// Models to call when `model` does not answer, in this order.
    pub fallbacks: Vec<ModelRef>,
    /// Provider-specific routing of the model; as configured when absent.
    pub route: Option<RawJson>,
    /// System prompt of the agent; may be empty.
    pub system_prompt: String,
    /// Names of the tools it may use; all available tools when absent.
    pub tools: Option<Vec<String>>,
    /// Names of tools that change something and whose calls of one answer run side by side.
    pub parallel_tools: Vec<String>,
    /// Tools that the client runs itself and answers with [`Orchestrator::tool_result`](crate::Orchestrator::tool_result).
    pub external_tools: Vec<Arc<Tool>>,
    /// Whether agents that it calls get none of the client's tools.
    pub keeps_client_tools: bool,
    /// Agents it may call.
    pub agents: CallableAgents,
    /// Runner that runs the task; this process when absent.
    pub runner: Option<RunnerConfig>,
    /// Session it continues; a new one when absent.
    pub session_id: Option<SessionId>,
    /// Messages before the task.
    pub before: PriorHistory,
    /// The user's message; absent when the history ends with a message to answer.
    pub message: Option<UserMessage>,
    /// Limits of the task and its descendants.
    pub limits: TaskLimits,
    /// JSON Schema of the result; any text when absent.
    pub output_schema: Option<RawJson>,
    /// Temperature and tool choice of model calls.
    pub model_options: ModelOptions,
    /// Id of the API key that pays; the owner pays when absent.
    pub payer: Option<String>,
    /// Where the order came from, as the interface knows it.
    pub provenance: Provenance,
    /// The canonical messages that the conversation came as; empty when it came in another form.
    pub canonical: Vec<CanonicalHeader>,
    /// Whether the client asked that it cannot be looked up as a response.
    pub unstored: bool,
    /// Whether the client follows the task: after a restart it goes on when the client follows it again, see
    /// [`Orchestrator::client_follows`](crate::Orchestrator::client_follows).
    pub followed: bool,
    /// What it may do within its permissions.
    pub access: TaskAccess,
    /// Makes a repeated request return the first task.
    pub key: Option<IdempotencyKey>,
}

/// Messages before a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PriorHistory {
    /// None.
    #[default]
    Nothing,
    /// The conversation of another task, up to an event.
    Task(HistoryRef),
    /// The same, followed by these messages. They answer the calls that the other task left to its client.
    Continued(HistoryRef, Vec<Arc<Message>>),
    /// These messages; they are copied into the task.
    Messages(Vec<Arc<Message>>),
}

/// A conversation to record as a completed task.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedConversation {
    /// Where it comes from: `import` or `fork`.
    pub agent: String,
    /// Session id; a new one when absent. Must not exist.
    pub session_id: Option<SessionId>,
    /// System prompt of the conversation; may be empty.
    pub system_prompt: String,
    /// The messages.
    pub before: PriorHistory,
    /// When it began and was last changed, where it comes from; now when absent.
    pub times: Option<ImportedTimes>,
    /// Id of the API key that created it; the owner when absent.
    pub payer: Option<String>,
    /// Makes a repeated request return the first task.
    pub key: Option<IdempotencyKey>,
}

impl ImportedConversation {
    pub(crate) async fn into_append(
        self,
        services: &Services,
    ) -> Result<Append, OrchestratorError> {
        self.check_new(services).await?;
        let (history, copied) = self.before.split(services).await?;
        let session_id =
            self.session_id.unwrap_or_else(|| SessionId::from(services.deps.ids.next()));
        let created = TaskCreated {
            system_prompt: self.system_prompt,
            history,
            imported: self.times,
            payer: self.payer,
            ..TaskCreated::new(self.agent, session_id)
        };
        let mut events = events(created, copied, None);
        let done = StatusChanged::new(TaskStatus::Completed);
        events.push(StatusChanged { detail: Some(Value::Null), ..done }.into());
        Ok(Append {
            task_id: TaskId::from(services.deps.ids.next()),
            expected: Expected::NoTask,
            at: services.deps.clock.now(),
            events,
            key: self.key,
        })
    }

    /// Refuses a session that exists: the next task of a session continues its newest messages, and an
    /// import must not replace those. A repeated request is not refused.
    async fn check_new(&self, services: &Services) -> Result<(), OrchestratorError> {
        let Some(session_id) = &self.session_id else { return Ok(()) };
        let journal = &services.deps.journal;
        if let Some(key) = &self.key
            && journal.answered(key).await?.is_some()
        {
            return Ok(());
        }
        let which = TaskSelector::Session(session_id.clone());
        let existing = journal.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
        if existing.is_empty() {
            return Ok(());
        }
        Err(OrchestratorError::SessionExists { session_id: session_id.clone() })
    }
}

impl PriorHistory {
    /// Returns the reference and the messages to copy.
    async fn split(
        self,
        services: &Services,
    ) -> Result<(Option<HistoryRef>, Vec<Arc<Message>>), OrchestratorError> {
        Ok(match self {
            Self::Nothing => (None, Vec::new()),
            Self::Task(history) => {
                // The referenced task must exist.
                services.reader.summary(&history.task_id).await?;
                (Some(history), Vec::new())
            }
            Self::Continued(history, messages) => {
                services.reader.summary(&history.task_id).await?;
                (Some(history), messages)
            }
            Self::Messages(messages) => (None, messages),
        })
    }
}

impl NewTask {
    /// A task with defaults for everything else, of unknown provenance.
    pub fn new(agent: impl Into<String>, model: ModelRef, message: UserMessage) -> Self {
        Self {
            agent: agent.into(),
            model,
            fallbacks: Vec::new(),
            route: None,
            system_prompt: String::new(),
            tools: None,
            parallel_tools: Vec::new(),
            external_tools: Vec::new(),
            keeps_client_tools: false,
            agents: CallableAgents::Any,
            runner: None,
            session_id: None,
            before: PriorHistory::Nothing,
            message: Some(message),
            limits: TaskLimits::default(),
            output_schema: None,
            model_options: ModelOptions::default(),
            payer: None,
            provenance: Provenance::Unknown,
            canonical: Vec::new(),
            unstored: false,
            followed: false,
            access: TaskAccess::Permitted,
            key: None,
        }
    }

    /// Checks the task and returns the append that creates it.
    pub(crate) async fn into_append(
        mut self,
        services: &Services,
    ) -> Result<Append, OrchestratorError> {
        if let Some(schema) = &self.output_schema {
            let bad = |reason| OrchestratorError::BadSchema { reason };
            output::check_schema(schema).map_err(bad)?;
        }
        if self.limits.cost_nano_usd_max.is_some()
            && services.deps.prices.price(&self.model).is_none()
        {
            let model = self.model.to_string();
            return Err(OrchestratorError::Limit(LimitReached::PriceUnknown { model }));
        }
        if let Some(runner) = self.runner.as_ref().filter(|_| !self.access.is_permitted()) {
            return Err(OrchestratorError::CannotPlan { runner: runner.kind.clone() });
        }
        external_tools::check(&self)?;
        external_tools::leave_out_those_of_runner(&mut self, &services.deps.tools.tools());
        let (history, copied) = self.before.split(services).await?;
        let session_id =
            self.session_id.unwrap_or_else(|| SessionId::from(services.deps.ids.next()));
        let mut tools = self.tools;
        if let Some(tools) = &mut tools {
            // Tools that the client offers are always usable.
            tools.extend(self.external_tools.iter().map(|tool| tool.name.clone()));
        }
        let created = TaskCreated {
            model: Some(self.model),
            fallbacks: self.fallbacks,
            system_prompt: self.system_prompt,
            tools,
            parallel_tools: self.parallel_tools,
            external_tools: self.external_tools,
            keeps_client_tools: self.keeps_client_tools,
            agents: self.agents,
            runner: self.runner,
            limits: self.limits,
            output_schema: self.output_schema,
            model_options: self.model_options,
            payer: self.payer,
            route: self.route,
            provenance: self.provenance,
            canonical: self.canonical,
            unstored: self.unstored,
            boot_time: services.deps.boot_time(&self.limits),
            followed: self.followed,
            access: self.access,
            history,
            ..TaskCreated::new(self.agent, session_id)
        };
        services.budget.check_price(&created)?;
        Ok(Append {
            task_id: TaskId::from(services.deps.ids.next()),
            expected: Expected::NoTask,
            at: services.deps.clock.now(),
            events: events(created, copied, self.message),
            key: self.key,
        })
    }
}

/// The creation and the messages before the first answer.
fn events(
    created: TaskCreated,
    history: Vec<Arc<Message>>,
    last: Option<UserMessage>,
) -> Vec<EventBody> {
    let interrupted = interrupted_results(&history);
    let said = history.into_iter().chain(interrupted).chain(last.map(Into::into));
    let said = said.map(|message| MessageAppended::new(message).into());
    [created.into()].into_iter().chain(said).collect()
}

/// Results for calls at the end of a history that have none. They were made in another task and
/// their outcome is not known here: they are never run again.
fn interrupted_results(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let last = history.iter().enumerate().rev().find_map(|(index, message)| match &**message {
        Message::Assistant(answer) => Some((answer, &history[index + 1..])),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let Some((answer, since)) = last else { return Vec::new() };
    let answered = |call: &ToolCallBlock| {
        since.iter().any(|message| match &**message {
            Message::ToolResult(result) => result.tool_call_id == call.id,
            Message::User(_) | Message::Assistant(_) => false,
        })
    };
    let unknown = |call| tools::message(call, tools::outcome_unknown(""), answer.timestamp).into();
    answer.tool_calls().filter(|call| !answered(call)).map(unknown).collect()
}
