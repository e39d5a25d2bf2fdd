//! The project of this server.

use std::sync::Arc;

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{
    ErrorCode, HandlingMode, Sender, TaskId, TaskLimits, TaskSummary, UserMessage, WaitingFor,
};
use antiphon_interface_transport::{AppState, Caller, ExposedAgents};
use antiphon_project::{
    TaskRequest, check_message_allowed, check_start_allowed, restrict_to_agent,
};
use antiphon_runtime::{NewTask, OrchestratorError, TaskMessage};
use axum::http::request::Parts;
use uuid::Uuid;

use super::{INTERFACE, NewCall, source};
use crate::agent_offer::{AgentOffer, offers};
use crate::failure::Failure;
use crate::feed::Feed;

pub(super) fn agents(state: &AppState, exposed: &ExposedAgents, parts: &Parts) -> Vec<AgentOffer> {
    let factory = &*state.deps.task_factory;
    let defined = factory.defined();
    let with_description = |name| {
        let definition = defined.iter().map(|agent| &agent.definition);
        let description = definition.clone().find(|definition| definition.name == name);
        let description = description.map(|definition| definition.description.clone());
        (name, description.unwrap_or_default())
    };
    offers(exposed.visible(factory, &parts.extensions).into_iter().map(with_description))
}

pub(super) async fn start(
    state: &Arc<AppState>,
    caller: &Caller,
    parts: &Parts,
    call: NewCall<'_>,
) -> Result<(TaskId, Feed), Failure> {
    let (orchestrator, principal) = (&state.deps.orchestrator, caller.principal());
    let kind = format!("{INTERFACE}/{}", call.agent.name);
    let key = call.key.unwrap_or_else(|| Uuid::new_v4().to_string());
    let key = principal.idempotency_key(&kind, &key);
    if let Some(task_id) = orchestrator.task_of_key(&key).await? {
        let feed = follow(state, &task_id).await?;
        return Ok((task_id, feed));
    }
    let task = TaskRequest {
        agent: Some(call.agent.name.to_string()),
        model: None,
        message: UserMessage::text(call.message, SystemClock.now()),
        history: Vec::new(),
        system_prompt: None,
        tools: None,
        agents: None,
        external_tools: Vec::new(),
        limits: TaskLimits::default(),
        output_schema: None,
        session_id: call.session.map(|(session_id, _)| session_id),
    };
    let factory = &*state.deps.task_factory;
    let task = restrict_to_agent(factory, &principal, task)?;
    let payer = caller.payer();
    orchestrator.check_budget(payer.as_deref(), Some(&key)).await?;
    let provenance = caller.provenance_of(&source()?);
    let task = NewTask { payer, provenance, ..factory.task(task).await? };
    check_start_allowed(orchestrator, &principal, &task)?;
    // The task does not end with its connection: a call that is canceled says so.
    let (accepted, watch) = orchestrator.invoke_watched(NewTask { key: Some(key), ..task }).await?;
    if !accepted.deduplicated {
        state.trace(&parts.headers, &accepted.task_id);
    }
    let feed = match watch.follower {
        Some(follower) => {
            Feed::of_server(orchestrator, &accepted.task_id, follower, watch.approvals)
        }
        None => follow(state, &accepted.task_id).await?,
    };
    Ok((accepted.task_id, feed))
}

pub(super) async fn follow(state: &AppState, task_id: &TaskId) -> Result<Feed, Failure> {
    let orchestrator = &state.deps.orchestrator;
    let head = orchestrator.head().await?;
    let follower = orchestrator.follow(Some(task_id.clone()), head);
    Ok(Feed::of_server(orchestrator, task_id, follower, None))
}

pub(super) async fn send(
    state: &AppState,
    caller: &Caller,
    task: &TaskSummary,
    text: String,
) -> Result<(), Failure> {
    let orchestrator = &state.deps.orchestrator;
    check_message_allowed(orchestrator, &caller.principal(), &task.task_id).await?;
    let from = match caller.agent() {
        Some(_) => caller.sender()?,
        None => Sender::External(source()?),
    };
    let message = TaskMessage {
        message: UserMessage::text(text, SystemClock.now()),
        mode: HandlingMode::Queue,
        from,
        key: None,
        provenance: caller.provenance_of(&source()?),
    };
    let payer = caller.payer();
    orchestrator.check_budget_for_message(payer.as_deref(), &task.task_id, &message).await?;
    match orchestrator.send_message(&task.task_id, message).await {
        Ok(_) => {}
        Err(OrchestratorError::Ended { .. }) => return Err(ended()),
        Err(error) => return Err(error.into()),
    }
    if task.waiting_for == Some(WaitingFor::Resume) {
        match orchestrator.resume(&task.task_id).await {
            // Another caller was faster.
            Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub(super) fn ended() -> Failure {
    let message = "the task has ended: call its agent again, with its `sessionId` as `session`";
    Failure::new(ErrorCode::Conflict, message)
}
