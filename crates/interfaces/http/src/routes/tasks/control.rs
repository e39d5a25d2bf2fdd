//! Commands to a task: cancel, interrupt, pause, resume, a message, the result of an external tool.

use std::sync::Arc;

use antiphon_api::{MessageAccepted, SendMessage, SendToolResult};
use antiphon_core::{Sender, TaskId, TaskSummary, ToolResult};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Json, PathId, idempotency};
use antiphon_project::{Principal, check_message_allowed, parse_blocks, parse_message};
use antiphon_runtime::TaskMessage;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::CREATED;

type Answer = Result<axum::Json<TaskSummary>, ApiError>;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let cancel = post_with(cancel, |route| {
        route
            .describe("cancel_task", Tag::Tasks, "Cancels a task and its descendants.")
            .fails(&[409])
    });
    let interrupt = post_with(interrupt, |route| {
        let summary = "Interrupts the turn of a task, which then waits until it is resumed.";
        route.describe("interrupt_task", Tag::Tasks, summary).fails(&[409])
    });
    let cancel_by_key = post_with(cancel_by_key, |route| {
        let summary = "Cancels the task that was created with this `Idempotency-Key`, or will be.";
        let route = route.describe("cancel_task_by_key", Tag::Tasks, summary);
        route.with_idempotency_key().fails(&[400])
    });
    let pause = post_with(pause, |route| {
        route.describe("pause_task", Tag::Tasks, "Pauses a task.").fails(&[409])
    });
    let resume = post_with(resume, |route| {
        route
            .describe(
                "resume_task",
                Tag::Tasks,
                "Resumes a task that is paused or was interrupted.",
            )
            .fails(&[409])
    });
    let messages = post_with(send_message, |route| {
        let route = route.describe("say_to_task", Tag::Tasks, "Sends a message to a task.");
        route.fails(&[403, 409]).response::<202, axum::Json<MessageAccepted>>()
    });
    let tool_result = post_with(tool_result, |route| {
        let summary = "Gives the result of a tool that the client runs.";
        route.describe("give_tool_result", Tag::Tasks, summary).fails(&[409])
    });
    ApiRouter::new()
        .api_route("/v1/tasks/{id}/cancel", cancel)
        .api_route("/v1/tasks/{id}/interrupt", interrupt)
        .api_route("/v1/tasks/cancel", cancel_by_key)
        .api_route("/v1/tasks/{id}/pause", pause)
        .api_route("/v1/tasks/{id}/resume", resume)
        .api_route("/v1/tasks/{id}/messages", messages)
        .api_route("/v1/tasks/{id}/tool_results", tool_result)
}

/// Cancels a task and its descendants. The cancellation is durable before the response.
pub(crate) async fn cancel(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Answer {
    state.deps.orchestrator.cancel(&task_id).await?;
    state.summary(&task_id).await.map(axum::Json)
}

/// Interrupts the turn of a task, as Ctrl-C does in `antiphon run`: its model call and its running tools
/// end, and it waits until a user resumes it. That is durable before the response.
pub(crate) async fn interrupt(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Answer {
    state.deps.orchestrator.interrupt(&task_id).await?;
    state.summary(&task_id).await.map(axum::Json)
}

/// Cancels the task of a key. When there is none, a creation with this key that comes later finds a canceled task.
pub(crate) async fn cancel_by_key(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
) -> Answer {
    let Some(key) = idempotency::key(&caller, CREATED, &headers)? else {
        return Err(ApiError::invalid(
            "`Idempotency-Key`: it is missing: send the key that the task was created with",
        ));
    };
    let task_id = state.deps.orchestrator.cancel_by_key(key).await?;
    state.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn pause(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Answer {
    state.deps.orchestrator.pause(&task_id).await?;
    state.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn resume(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Answer {
    state.deps.orchestrator.resume(&task_id).await?;
    state.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn send_message(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    PathId(task_id): PathId<TaskId>,
    headers: HeaderMap,
    Json(wire): Json<SendMessage>,
) -> Result<(StatusCode, axum::Json<MessageAccepted>), ApiError> {
    let orchestrator = &state.deps.orchestrator;
    check_message_allowed(orchestrator, &caller.principal(), &task_id).await?;
    let (from, provenance) = match wire.from {
        // An agent speaks as itself.
        Some(source) if caller.agent().is_none() => {
            let provenance = caller.provenance_of(&source);
            (Sender::External(source), provenance)
        }
        Some(_) | None => (caller.sender()?, caller.principal().provenance()),
    };
    let message = TaskMessage {
        message: parse_message("text", &wire.text)?,
        mode: wire.mode,
        from,
        key: idempotency::key(&caller, Principal::TASK_MESSAGES, &headers)?,
        provenance,
    };
    orchestrator.check_budget_for_message(caller.payer().as_deref(), &task_id, &message).await?;
    let interaction_id = orchestrator.send_message(&task_id, message).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(MessageAccepted { interaction_id })))
}

pub(crate) async fn tool_result(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
    Json(outcome): Json<SendToolResult>,
) -> Answer {
    let content = parse_blocks("content", &outcome.content)?;
    let result = ToolResult { content, is_error: outcome.is_error };
    state.deps.orchestrator.tool_result(&task_id, &outcome.tool_call_id, result).await?;
    state.summary(&task_id).await.map(axum::Json)
}
