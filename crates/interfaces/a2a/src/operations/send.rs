//! `SendMessage` and `SendStreamingMessage`: a new task, or a message to one that has not ended. A `messageId` is
//! accepted once: sent again, it gives the same task.

use std::num::NonZeroUsize;
use std::sync::Arc;

use a2a::{SendMessageConfiguration, SendMessageRequest, TaskState, error_code};
use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{HandlingMode, SessionId, TaskId, TaskLimits, TaskSummary, WaitingFor};
use antiphon_interface_transport::ApiError;
use antiphon_project::{
    TaskRequest, check_message_allowed, check_start_allowed, restrict_to_agent,
};
use antiphon_runtime::{NewTask, OrchestratorError, TaskMessage, TaskWatch};
use serde_json::json;

use super::{AgentRequest, KnownWait};
use crate::error::A2aError;
use crate::exposure::may_see;
use crate::reply::{AwaitedTask, Reply};
use crate::task_view::{Extent, check_history};
use crate::{approval, message};

/// Kind of the keys of messages that create tasks, and of messages to tasks.
const CREATED: &str = "a2a";
const SAID: &str = "a2a-said";

/// The task that a message led to.
struct Sent {
    task_id: TaskId,
    /// Where to read a new task from.
    watch: TaskWatch,
    /// Whether the message decided an approval: a task that still waits is about to go on.
    decided: bool,
}

pub(crate) async fn send(
    request: &AgentRequest,
    params: SendMessageRequest,
) -> Result<Reply, A2aError> {
    let configuration = params.configuration.clone();
    let (returns, history) = configuration.as_ref().map_or((false, None), |configuration| {
        (configuration.return_immediately.unwrap_or(false), configuration.history_length)
    });
    let Sent { task_id, watch, decided } = accept(request, params, configuration).await?;
    let extent = Extent { history, artifacts: true };
    if returns {
        let summary = request.state.summary(&task_id).await?;
        return Ok(Reply::Value(json!({ "task": request.view(&summary, extent).await? })));
    }
    let (task, watcher) = request.watch(&task_id, watch).await?;
    if task.status.state == TaskState::InputRequired && !decided {
        let summary = request.state.summary(&task_id).await?;
        return Ok(Reply::Value(json!({ "task": request.view(&summary, extent).await? })));
    }
    let state = Arc::clone(&request.state);
    Ok(Reply::Awaited(Box::new(AwaitedTask { state, task_id, extent, watcher })))
}

pub(crate) async fn stream(
    request: &AgentRequest,
    params: SendMessageRequest,
) -> Result<Reply, A2aError> {
    let configuration = params.configuration.clone();
    let Sent { task_id, watch, decided } = accept(request, params, configuration).await?;
    // A task that waits for a person already does not change by itself: it is the only event.
    let wait = if decided { KnownWait::Continues } else { KnownWait::Ends };
    request.updates(&task_id, watch, wait).await
}

/// Accepts a message. It is durable when this returns.
async fn accept(
    request: &AgentRequest,
    params: SendMessageRequest,
    configuration: Option<SendMessageConfiguration>,
) -> Result<Sent, A2aError> {
    message::check(&params.message)?;
    check_history(configuration.as_ref().and_then(|given| given.history_length))?;
    let push = configuration.and_then(|given| given.task_push_notification_config);
    if let Some(push) = &push {
        request.a2a.push.check(push)?;
    }
    let task_id = params.message.task_id.clone().filter(|task_id| !task_id.is_empty());
    let sent = match task_id {
        Some(task_id) => say(request, &task_id, &params.message).await?,
        None => create(request, &params.message).await?,
    };
    if let Some(push) = push {
        request.create_push(&sent.task_id, push).await?;
    }
    Ok(sent)
}

/// Creates the task of a message.
async fn create(request: &AgentRequest, said: &a2a::Message) -> Result<Sent, A2aError> {
    let (state, caller) = (&request.state, &request.caller);
    let (orchestrator, principal) = (&state.deps.orchestrator, caller.principal());
    let kind = format!("{CREATED}/{}", request.agent);
    let key = principal.idempotency_key(&kind, &said.message_id);
    if let Some(task_id) = orchestrator.task_of_key(&key).await? {
        return Ok(Sent { task_id, watch: TaskWatch::default(), decided: false });
    }
    let context_id = said.context_id.as_deref().filter(|context_id| !context_id.is_empty());
    let session_id = match context_id {
        None => None,
        Some(context_id) => Some(session(request, context_id).await?),
    };
    let task = TaskRequest {
        agent: Some(request.agent.to_string()),
        model: None,
        message: message::user_message(said)?,
        history: Vec::new(),
        system_prompt: None,
        tools: None,
        agents: None,
        external_tools: Vec::new(),
        limits: TaskLimits::default(),
        output_schema: None,
        session_id,
    };
    let factory = &*state.deps.task_factory;
    let task = restrict_to_agent(factory, &principal, task)?;
    let payer = caller.payer();
    orchestrator.check_budget(payer.as_deref(), Some(&key)).await?;
    let provenance = principal.provenance();
    let task = NewTask { payer, provenance, ..factory.task(task).await? };
    check_start_allowed(orchestrator, &principal, &task)?;
    // The task goes on without its client.
    let (accepted, watch) = orchestrator.invoke_watched(NewTask { key: Some(key), ..task }).await?;
    if !accepted.deduplicated {
        state.trace(&request.parts.headers, &accepted.task_id);
    }
    Ok(Sent { task_id: accepted.task_id, watch, decided: false })
}

/// The session of a `contextId`: one that the caller may continue. Others are refused alike.
async fn session(request: &AgentRequest, context_id: &str) -> Result<SessionId, A2aError> {
    let none = || {
        let reason = "there is no such context: omit it, and use the `contextId` of the response";
        A2aError::param("message.contextId", reason)
    };
    let session_id = SessionId::parse(context_id).map_err(|_| none())?;
    let filter =
        TaskFilter { session: Some(session_id.clone()), roots: true, ..TaskFilter::default() };
    let query = TaskQuery { which: TaskSelector::Matching(filter), limit: NonZeroUsize::MIN };
    let newest = request.state.deps.orchestrator.tasks(query).await?.into_iter().next();
    match newest {
        Some(task) if may_see(&request.caller, &request.agent, &task) => Ok(session_id),
        Some(_) | None => Err(none()),
    }
}

/// Sends a message to a task that has not ended, or decides an approval.
async fn say(request: &AgentRequest, task_id: &str, said: &a2a::Message) -> Result<Sent, A2aError> {
    let (state, caller) = (&request.state, &request.caller);
    let orchestrator = &state.deps.orchestrator;
    let summary = request.find(task_id).await?;
    let TaskSummary { task_id, session_id, .. } = &summary;
    if said
        .context_id
        .as_deref()
        .is_some_and(|context_id| !context_id.is_empty() && context_id != session_id.as_str())
    {
        return Err(A2aError::param("message.contextId", "the task belongs to another context"));
    }
    let sent = Sent { task_id: task_id.clone(), watch: TaskWatch::default(), decided: false };
    if let Some(decision) = approval::decision(said)? {
        approval::decide(state, caller, task_id, decision).await?;
        return Ok(Sent { decided: true, ..sent });
    }
    let key = caller.principal().idempotency_key(SAID, &said.message_id);
    if approval::answer_in_words(state, caller, task_id, said, &key).await? {
        return Ok(Sent { decided: true, ..sent });
    }
    check_message_allowed(orchestrator, &caller.principal(), task_id).await?;
    let message = TaskMessage {
        message: message::user_message(said)?,
        mode: HandlingMode::Queue,
        from: caller.sender()?,
        key: Some(key),
        provenance: caller.principal().provenance(),
    };
    orchestrator.check_budget_for_message(caller.payer().as_deref(), task_id, &message).await?;
    match orchestrator.send_message(task_id, message).await {
        Ok(_) => {}
        Err(OrchestratorError::Ended { .. }) => {
            let message =
                "the task has ended: send a message without `taskId`, with its `contextId`";
            return Err(A2aError::new(error_code::UNSUPPORTED_OPERATION, message));
        }
        Err(error) => return Err(ApiError::from(error).into()),
    }
    if summary.waiting_for == Some(WaitingFor::Resume) {
        match orchestrator.resume(task_id).await {
            // Another caller was faster.
            Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}
