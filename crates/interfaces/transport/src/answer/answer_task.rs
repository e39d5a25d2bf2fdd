//! The task of a request for an answer.
//!
//! `model` names an agent, or a model that answers without one. The key of an agent may send another agent one
//! message, which is read as data.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, AssistantBlock, AssistantMessage, CallableAgents, HistoryRef, Message, ModelOptions,
    ModelRef, RawJson, SessionId, TaskLimits, Tool, ToolChoice, UserMessage,
};
use antiphon_project::{TaskFactory, TaskRequest, check_start_allowed, labeled, restrict_to_agent};
use antiphon_runtime::{NewTask, PriorHistory};
use axum::http::StatusCode;

use super::answer_agents::AnswerAgents;
use super::answer_error::AnswerError;
use super::conversation::Conversation;
use crate::access::caller::Caller;
use crate::api_error::ApiError;
use crate::state::AppState;

/// Turns of a plain model for one request, at most. It takes more than one to correct an invalid output.
const PLAIN_TURNS_MAX: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// Agent name of requests to a plain model, in the journal.
const PLAIN: &str = "chat";

/// A request for an answer.
#[derive(Debug)]
pub struct AnswerRequest {
    /// What `model` names, as the client wrote it.
    pub model: Option<String>,
    /// The conversation, or what follows `previous`.
    pub conversation: Conversation,
    /// The conversation before, in the journal.
    pub previous: Option<PreviousConversation>,
    /// Options of the model calls.
    pub options: ModelOptions,
    /// Most tokens of one model answer.
    pub max_tokens: Option<NonZeroU32>,
    /// Tools that the client runs.
    pub tools: Vec<Arc<Tool>>,
    /// JSON Schema of the answer.
    pub schema: Option<RawJson>,
    /// Whether the answer can be looked up later.
    pub storage: AnswerStorage,
}

/// Whether an answer can be looked up later. The journal has its task in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStorage {
    /// By its id.
    Stored,
    /// It cannot.
    Unstored,
}

/// A conversation in the journal that a request continues.
#[derive(Debug, Clone)]
pub struct PreviousConversation {
    /// Its session.
    pub session_id: SessionId,
    /// Its messages; absent for a session that has none.
    pub history: Option<HistoryRef>,
    /// Its system prompt, for a request without one.
    pub system_prompt: String,
}

/// What `model` names.
#[derive(Debug)]
pub enum AnswerTarget {
    /// An agent.
    Agent(AgentName),
    /// A model without an agent; the default model when absent.
    Plain(Option<ModelRef>),
}

/// What a request without `model` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingModel {
    /// The default model answers.
    Default,
    /// It is refused.
    Refused,
}

/// Names that `model` can have, each with its owner: agents, known models, and aliases of the user.
pub fn known_models(state: &AppState, agents: &AnswerAgents) -> Vec<(String, String)> {
    let factory = &state.deps.task_factory;
    let named = |alias: &str| target(&**factory, agents, Some(alias), MissingModel::Refused);
    let agents = agents.names().iter().map(|agent| (agent.to_string(), OWNER.to_owned()));
    let models = factory.models().into_iter();
    let models = models.map(|known| (known.to_string(), known.provider().to_owned()));
    let aliases = factory.aliases().into_iter().filter(|name| !name.ends_with('*'));
    let aliases = aliases.filter(|name| named(name).is_ok());
    agents.chain(models).chain(aliases.map(|name| (name, OWNER.to_owned()))).collect()
}

/// Owner of agents and aliases.
const OWNER: &str = "antiphon";

/// What `model` names: an agent, a model, or an alias of either.
pub fn target(
    factory: &dyn TaskFactory,
    agents: &AnswerAgents,
    model: Option<&str>,
    missing: MissingModel,
) -> Result<AnswerTarget, AnswerError> {
    let Some(model) = model else {
        return match missing {
            MissingModel::Default => Ok(AnswerTarget::Plain(None)),
            MissingModel::Refused => {
                let message = "name an agent or a PROVIDER/MODEL: see /v1/models";
                Err(AnswerError::field("model", message))
            }
        };
    };
    let find = |name: &str| match agents.find(name) {
        Some(agent) => Some(AnswerTarget::Agent(agent.clone())),
        None => ModelRef::parse(name).ok().map(|model| AnswerTarget::Plain(Some(model))),
    };
    let found = match factory.alias(model) {
        Some(name) => find(&name),
        None => find(model),
    };
    found.ok_or_else(|| model_not_found(model))
}

/// No agent and no model has this name: 404.
pub fn model_not_found(model: &str) -> AnswerError {
    let message =
        format!("`{model}` is neither an agent nor a PROVIDER/MODEL nor an alias: see /v1/models");
    AnswerError::not_found("model", message).coded("model_not_found")
}

/// The task of a request.
pub(crate) async fn task(
    state: &AppState,
    caller: &Caller,
    target: AnswerTarget,
    mut request: AnswerRequest,
) -> Result<NewTask, AnswerError> {
    if let AnswerTarget::Agent(name) = &target {
        request = for_agent(caller, name, request).await?;
    }
    let (agent, model, none) = match target {
        AnswerTarget::Agent(name) => (Some(name.to_string()), None, None),
        AnswerTarget::Plain(model) => (None, model, Some(Vec::new())),
    };
    let is_plain = none.is_some();
    let AnswerRequest { conversation, previous, options, max_tokens, tools, schema, .. } = request;
    let unstored = request.storage == AnswerStorage::Unstored;
    let limits = TaskLimits { answer_tokens_max: max_tokens, ..TaskLimits::default() };
    let requested = TaskRequest {
        agent,
        model,
        // The conversation is added below.
        message: UserMessage { content: Vec::new(), timestamp: SystemClock.now() },
        history: Vec::new(),
        system_prompt: None,
        tools: none.clone(),
        agents: none,
        external_tools: tools,
        limits,
        output_schema: schema,
        session_id: None,
    };
    let built = match build(state, caller, requested, is_plain).await {
        Ok(built) => built,
        Err(error) => return Err(AnswerError::native(error).await),
    };
    let Conversation { mut system, mut messages, canonical } = conversation;
    own_thoughts(&mut messages, &built.model);
    let session_id = previous.as_ref().map(|previous| previous.session_id.clone());
    if let Some(previous) = &previous
        && system.trim().is_empty()
    {
        system.clone_from(&previous.system_prompt);
    }
    let before = match previous.and_then(|previous| previous.history) {
        Some(history) => PriorHistory::Continued(history, messages),
        None => PriorHistory::Messages(messages),
    };
    let task = NewTask {
        session_id,
        before,
        canonical,
        unstored,
        message: None,
        model_options: options,
        ..built
    };
    Ok(if is_plain { plain_task(task, system) } else { agent_task(task, &system) })
}

/// The request as an agent takes it: the agent chooses its tools itself.
async fn for_agent(
    caller: &Caller,
    name: &AgentName,
    mut request: AnswerRequest,
) -> Result<AnswerRequest, AnswerError> {
    match request.options.tool_choice {
        ToolChoice::Auto => {}
        // The agent has tools of its own, which it may still use.
        ToolChoice::None => request.tools.clear(),
        ToolChoice::Required | ToolChoice::Named(_) => {
            let message = format!("agent `{name}` chooses its tools itself: use `auto` or `none`");
            return Err(AnswerError::field("tool_choice", message));
        }
    }
    request.options.tool_choice = ToolChoice::Auto;
    if let Some(previous) = &mut request.previous {
        if caller.agent().is_some() {
            return Err(only_one_message());
        }
        // The agent has its own prompt, which the last one contains.
        previous.system_prompt.clear();
    }
    request.conversation = restrict_conversation(caller, request.conversation).await?;
    Ok(request)
}

/// Thinking that names no model is that of the model of the task: the client says so by sending it.
fn own_thoughts(messages: &mut [Arc<Message>], model: &ModelRef) {
    let is_private = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => true,
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => false,
    };
    for message in messages {
        if let Message::Assistant(answer) = &**message
            && answer.model.is_none()
            && answer.content.iter().any(is_private)
        {
            let model = Some(model.clone());
            *message = AssistantMessage { model, ..answer.clone() }.into();
        }
    }
}

fn only_one_message() -> AnswerError {
    let message = "an agent's key may send one user message to another agent, without system prompt \
                   and history: name a PROVIDER/MODEL for a whole conversation";
    AnswerError::new(StatusCode::FORBIDDEN, message)
}

/// The task as the task factory builds it. A plain model has no tools that an agent's key could misuse.
async fn build(
    state: &AppState,
    caller: &Caller,
    request: TaskRequest,
    is_plain: bool,
) -> Result<NewTask, ApiError> {
    let (factory, principal) = (&*state.deps.task_factory, caller.principal());
    let request = if is_plain { request } else { restrict_to_agent(factory, &principal, request)? };
    let built = factory.task(request).await?;
    check_start_allowed(&state.deps.orchestrator, &principal, &built)?;
    Ok(built)
}

/// What the holder of an agent's key may send to an agent: one user message, which is read as data.
async fn restrict_conversation(
    caller: &Caller,
    conversation: Conversation,
) -> Result<Conversation, AnswerError> {
    if caller.agent().is_none() {
        return Ok(conversation);
    }
    let from = match caller.sender() {
        Ok(from) => from,
        Err(error) => return Err(AnswerError::native(error).await),
    };
    match (conversation.system.trim(), conversation.messages.as_slice()) {
        ("", [only]) if let Message::User(user) = &**only => {
            let labeled = labeled(from, user.clone());
            Ok(Conversation { messages: vec![Arc::new(labeled.into())], ..conversation })
        }
        _ => Err(only_one_message()),
    }
}

/// A task of a plain model, with the client's system prompt alone.
fn plain_task(task: NewTask, system_prompt: String) -> NewTask {
    NewTask {
        agent: PLAIN.to_owned(),
        system_prompt,
        tools: Some(Vec::new()),
        agents: CallableAgents::Only(Vec::new()),
        limits: TaskLimits { turns_max: Some(PLAIN_TURNS_MAX), ..task.limits },
        ..task
    }
}

/// A task of an agent: its system prompt, followed by the client's. Agents that it calls get none of the client's tools: their
/// calls would wait for a client that has no way to answer them.
fn agent_task(task: NewTask, system: &str) -> NewTask {
    let parts = [task.system_prompt.as_str(), system];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    NewTask { system_prompt: parts.join("\n\n"), keeps_client_tools: true, ..task }
}
