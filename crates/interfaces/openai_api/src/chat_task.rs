//! The task of a chat request.
//!
//! `model` names an agent, or a model that answers without one. The key of an agent may send another agent one
//! message, which is read as data.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, CallableAgents, Message, ModelOptions, ModelRef, TaskLimits, ToolChoice, UserMessage,
};
use antiphon_interface_transport::{ApiError, AppState, Caller};
use antiphon_project::{TaskRequest, check_start_allowed, labeled, restrict_to_agent};
use antiphon_runtime::{NewTask, PriorHistory};
use axum::http::StatusCode;

use crate::chat_error::{ChatError, Shape};
use crate::chat_request::ChatRequest;
use crate::conversation::Conversation;

/// Turns of a plain model for one request, at most. It takes more than one to correct an invalid output.
const PLAIN_TURNS_MAX: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// Agent name of requests to a plain model, in the journal.
const PLAIN: &str = "chat";

/// What `model` names.
pub(crate) enum ChatTarget {
    Agent(AgentName),
    /// A model without an agent; the default model when absent.
    Plain(Option<ModelRef>),
}

pub(crate) fn target(
    model: Option<&str>,
    agents: &[AgentName],
    shape: Shape,
) -> Result<ChatTarget, ChatError> {
    let Some(model) = model else {
        return match shape {
            Shape::Canonical => Ok(ChatTarget::Plain(None)),
            Shape::OpenAi => {
                let message = "name an agent or a PROVIDER/MODEL: see /v1/models";
                Err(ChatError::field("model", message))
            }
        };
    };
    if let Some(agent) = agents.iter().find(|agent| agent.as_str() == model) {
        return Ok(ChatTarget::Agent(agent.clone()));
    }
    let parsed = ModelRef::parse(model).map(|model| ChatTarget::Plain(Some(model)));
    parsed.map_err(|_| model_not_found(model))
}

pub(crate) fn model_not_found(model: &str) -> ChatError {
    let message = format!("`{model}` is neither an agent nor a PROVIDER/MODEL: see /v1/models");
    let error = ChatError::field("model", message).coded("model_not_found");
    ChatError { status: StatusCode::NOT_FOUND, ..error }
}

/// The task of a chat request.
pub(crate) async fn task(
    state: &AppState,
    caller: &Caller,
    target: ChatTarget,
    mut chat: ChatRequest,
) -> Result<NewTask, ChatError> {
    if let ChatTarget::Agent(name) = &target {
        match chat.tool_choice {
            ToolChoice::Auto => {}
            // The agent has tools of its own, which it may still use.
            ToolChoice::None => chat.tools.clear(),
            ToolChoice::Required | ToolChoice::Named(_) => {
                let message =
                    format!("agent `{name}` chooses its tools itself: use `auto` or `none`");
                return Err(ChatError::field("tool_choice", message));
            }
        }
        chat.tool_choice = ToolChoice::Auto;
        chat.conversation = restrict_conversation(caller, chat.conversation).await?;
    }
    let (agent, model, none) = match target {
        ChatTarget::Agent(name) => (Some(name.to_string()), None, None),
        ChatTarget::Plain(model) => (None, model, Some(Vec::new())),
    };
    let is_plain = none.is_some();
    let request = TaskRequest {
        agent,
        model,
        // The conversation is added below.
        message: UserMessage { content: Vec::new(), timestamp: SystemClock.now() },
        history: Vec::new(),
        system_prompt: None,
        tools: none.clone(),
        agents: none,
        external_tools: chat.tools,
        limits: TaskLimits { answer_tokens_max: chat.max_tokens, ..TaskLimits::default() },
        output_schema: chat.schema,
        session_id: None,
    };
    let built = match build(state, caller, request, is_plain).await {
        Ok(built) => built,
        Err(error) => return Err(ChatError::native(error).await),
    };
    let task = NewTask {
        before: PriorHistory::Messages(chat.conversation.messages),
        canonical: chat.conversation.canonical,
        message: None,
        manner: ModelOptions {
            temperature: chat.temperature,
            tool_choice: chat.tool_choice,
            sampling: chat.sampling,
        },
        ..built
    };
    let system = chat.conversation.system;
    if is_plain { Ok(plain_task(task, system)) } else { agent_task(task, &system) }
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
) -> Result<Conversation, ChatError> {
    if caller.agent().is_none() {
        return Ok(conversation);
    }
    let from = match caller.sender() {
        Ok(from) => from,
        Err(error) => return Err(ChatError::native(error).await),
    };
    match (conversation.system.trim(), conversation.messages.as_slice()) {
        ("", [only]) if let Message::User(user) = &**only => {
            let labeled = labeled(from, user.clone());
            Ok(Conversation { messages: vec![Arc::new(labeled.into())], ..conversation })
        }
        _ => {
            let message = "an agent's key may send one user message to another agent, without system prompt \
                           and history: name a PROVIDER/MODEL for a whole conversation";
            Err(ChatError::new(StatusCode::FORBIDDEN, message))
        }
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

/// A task of an agent: its system prompt, followed by the client's.
fn agent_task(task: NewTask, system: &str) -> Result<NewTask, ChatError> {
    if !task.external_tools.is_empty() && !task.agents.allows_none() {
        let message = format!(
            "agent `{}` may call other agents, which cannot use the client's tools: offer no tools, or \
             name an agent that calls no others",
            task.agent
        );
        return Err(ChatError::field("tools", message));
    }
    let parts = [task.system_prompt.as_str(), system];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    Ok(NewTask { system_prompt: parts.join("\n\n"), ..task })
}
