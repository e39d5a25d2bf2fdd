//! A task to be accepted.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, TaskQuery, TaskSelector};
use antiphon_core::{
    CallableAgents, EventBody, HistoryRef, Message, MessageAppended, ModelOptions, ModelRef,
    RawJson, RunnerConfig, SessionId, StatusChanged, TaskCreated, TaskId, TaskLimits, TaskStatus,
    Tool, ToolCallBlock, UserMessage,
};
use serde_json::Value;

use crate::inner::Inner;
use crate::limits::LimitReached;
use crate::orchestrator_error::OrchestratorError;
use crate::{external, output, tools};

/// A task to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Who works on it.
    pub agent: String,
    /// Which model answers.
    pub model: ModelRef,
    /// Who answers when that one cannot, in order.
    pub fallbacks: Vec<ModelRef>,
    /// How that is reached, if it is not as configured.
    pub route: Option<RawJson>,
    /// The scene.
    pub system_prompt: String,
    /// The tools it may use; all there are when absent.
    pub tools: Option<Vec<String>>,
    /// Tools that whoever asks runs itself.
    pub external_tools: Vec<Tool>,
    /// The agents it may call.
    pub agents: CallableAgents,
    /// Who works on it, when that is not this orchestrator.
    pub runner: Option<RunnerConfig>,
    /// The conversation it goes on with; a new one when absent.
    pub session_id: Option<SessionId>,
    /// What was said before, in the journal or elsewhere.
    pub before: PriorHistory,
    /// What to do; absent when what was said before ends with something to answer.
    pub message: Option<UserMessage>,
    /// How far it may go.
    pub limits: TaskLimits,
    /// JSON Schema of its result.
    pub output_schema: Option<RawJson>,
    /// How its model is asked.
    pub manner: ModelOptions,
    /// The key that pays for it; the owner when absent.
    pub payer: Option<String>,
    /// Makes a repeated request harmless.
    pub key: Option<IdempotencyKey>,
}

/// What was said before a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PriorHistory {
    /// Nothing.
    #[default]
    Nothing,
    /// What another task has in the journal.
    Task(HistoryRef),
    /// This.
    Messages(Vec<Arc<Message>>),
}

/// A conversation to be kept, with nothing to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedConversation {
    /// How it came about: `import`, `fork`.
    pub agent: String,
    /// Which; a new one when absent.
    pub session_id: Option<SessionId>,
    /// The scene.
    pub system_prompt: String,
    /// What was said.
    pub before: PriorHistory,
    /// Makes a repeated request harmless.
    pub key: Option<IdempotencyKey>,
}

impl ImportedConversation {
    pub(crate) async fn accept(self, inner: &Inner) -> Result<Append, OrchestratorError> {
        self.check_new(inner).await?;
        let (history, copied) = self.before.split(inner).await?;
        let session_id = self.session_id.unwrap_or_else(|| SessionId::from(inner.world.ids.next()));
        let created = TaskCreated {
            system_prompt: self.system_prompt,
            history,
            ..TaskCreated::new(self.agent, session_id)
        };
        let mut events = events(created, copied, None);
        let done = StatusChanged::new(TaskStatus::Completed);
        events.push(StatusChanged { detail: Some(Value::Null), ..done }.into());
        Ok(Append {
            task_id: TaskId::from(inner.world.ids.next()),
            expected: Expected::NoTask,
            at: inner.world.clock.now(),
            events,
            key: self.key,
        })
    }

    /// Whoever goes on with a session finds what was said last in it: what is brought does not take
    /// the place of what is there. The same request again is no second one.
    async fn check_new(&self, inner: &Inner) -> Result<(), OrchestratorError> {
        let Some(session_id) = &self.session_id else { return Ok(()) };
        let journal = &inner.world.journal;
        if let Some(key) = &self.key
            && journal.answered(key).await?.is_some()
        {
            return Ok(());
        }
        let which = TaskSelector::Session(session_id.clone());
        let there = journal.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
        if there.is_empty() {
            return Ok(());
        }
        Err(OrchestratorError::SessionThere { session_id: session_id.clone() })
    }
}

impl PriorHistory {
    /// What is pointed to, and what is written down.
    async fn split(
        self,
        inner: &Inner,
    ) -> Result<(Option<HistoryRef>, Vec<Arc<Message>>), OrchestratorError> {
        Ok(match self {
            Self::Nothing => (None, Vec::new()),
            Self::Task(history) => {
                // It has to be there.
                inner.summary(&history.task_id).await?;
                (Some(history), Vec::new())
            }
            Self::Messages(messages) => (None, messages),
        })
    }
}

impl NewTask {
    /// A task with nothing special about it.
    pub fn new(agent: impl Into<String>, model: ModelRef, message: UserMessage) -> Self {
        Self {
            agent: agent.into(),
            model,
            fallbacks: Vec::new(),
            route: None,
            system_prompt: String::new(),
            tools: None,
            external_tools: Vec::new(),
            agents: CallableAgents::Any,
            runner: None,
            session_id: None,
            before: PriorHistory::Nothing,
            message: Some(message),
            limits: TaskLimits::default(),
            output_schema: None,
            manner: ModelOptions::default(),
            payer: None,
            key: None,
        }
    }

    /// What is written of it, if it can be accepted.
    pub(crate) async fn accept(self, inner: &Inner) -> Result<Append, OrchestratorError> {
        if let Some(schema) = &self.output_schema {
            let bad = |reason| OrchestratorError::BadSchema { reason };
            output::check_schema(schema).map_err(bad)?;
        }
        if self.limits.cost_nano_usd_max.is_some()
            && inner.world.prices.price(&self.model).is_none()
        {
            let model = self.model.to_string();
            return Err(OrchestratorError::Limit(LimitReached::PriceUnknown { model }));
        }
        external::check(&self, &inner.world.tools.tools())?;
        let (history, copied) = self.before.split(inner).await?;
        let session_id = self.session_id.unwrap_or_else(|| SessionId::from(inner.world.ids.next()));
        let mut tools = self.tools;
        if let Some(tools) = &mut tools {
            // Whoever offers tools wants them to be used.
            tools.extend(self.external_tools.iter().map(|tool| tool.name.clone()));
        }
        let created = TaskCreated {
            model: Some(self.model),
            fallbacks: self.fallbacks,
            system_prompt: self.system_prompt,
            tools,
            external_tools: self.external_tools,
            agents: self.agents,
            runner: self.runner,
            limits: self.limits,
            output_schema: self.output_schema,
            model_options: self.manner,
            payer: self.payer,
            route: self.route,
            history,
            ..TaskCreated::new(self.agent, session_id)
        };
        inner.check_price(&created)?;
        Ok(Append {
            task_id: TaskId::from(inner.world.ids.next()),
            expected: Expected::NoTask,
            at: inner.world.clock.now(),
            events: events(created, copied, self.message),
            key: self.key,
        })
    }
}

/// A creation, and everything said up to the first answer.
fn events(
    created: TaskCreated,
    history: Vec<Arc<Message>>,
    last: Option<UserMessage>,
) -> Vec<EventBody> {
    let cut_off = cut_off(&history);
    let said = history.into_iter().chain(cut_off).chain(last.map(Into::into));
    let said = said.map(|message| MessageAppended::new(message).into());
    [created.into()].into_iter().chain(said).collect()
}

/// Results for the calls at the end of a history that have none. They were made in another task,
/// and what came of them is not known here: they are never run again.
fn cut_off(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
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
    let unknown = |call| tools::message(call, tools::outcome_unknown(), answer.timestamp).into();
    answer.tool_calls().filter(|call| !answered(call)).map(unknown).collect()
}
