//! Orders to a task: end, rest, go on, hear this, here is your result.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use antiphon_core::schema::{BlocksOrText, MessageOrText};
use antiphon_core::{HandlingMode, InteractionId, TaskId, TaskSummary, ToolCallId, ToolResult};
use antiphon_runtime::TaskMessage;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::json::Json;
use crate::named::Named;
use crate::on_behalf;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::said;

type Answer = Result<axum::Json<TaskSummary>, ApiError>;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let cancel = post_with(cancel, |route| {
        route.told("cancel_task", Tag::Tasks, "Ends a task and everything below it.").fails(&[409])
    });
    let pause = post_with(pause, |route| {
        route.told("pause_task", Tag::Tasks, "Lets a task rest.").fails(&[409])
    });
    let resume = post_with(resume, |route| {
        route.told("resume_task", Tag::Tasks, "Lets a task go on.").fails(&[409])
    });
    let say = post_with(say, |route| {
        let route = route.told("say_to_task", Tag::Tasks, "Says something to a task.");
        route.fails(&[403, 409]).response::<202, axum::Json<Heard>>()
    });
    let tool_result = post_with(tool_result, |route| {
        let summary = "What came of a call of a tool that the client runs.";
        route.told("give_tool_result", Tag::Tasks, summary).fails(&[409])
    });
    ApiRouter::new()
        .api_route("/v1/tasks/{id}/cancel", cancel)
        .api_route("/v1/tasks/{id}/pause", pause)
        .api_route("/v1/tasks/{id}/resume", resume)
        .api_route("/v1/tasks/{id}/messages", say)
        .api_route("/v1/tasks/{id}/tool_results", tool_result)
}

/// Ends a task and everything below it. When this is answered, the journal says so.
pub(crate) async fn cancel(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
) -> Answer {
    room.doors.orchestrator.cancel(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn pause(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
) -> Answer {
    room.doors.orchestrator.pause(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn resume(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
) -> Answer {
    room.doors.orchestrator.resume(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

/// Something to say to a task.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Saying")]
#[schemars(example = json!({ "text": "Look at the tests, too.", "mode": "steer" }))]
pub(crate) struct SayingWire {
    /// What: a text, or text and images.
    #[schemars(with = "MessageOrText")]
    text: Box<RawValue>,
    /// When it may reach the model.
    #[serde(default)]
    mode: HandlingMode,
}

/// What was said is in the journal.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Heard {
    interaction_id: InteractionId,
}

pub(crate) async fn say(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    Named(task_id): Named<TaskId>,
    headers: HeaderMap,
    Json(wire): Json<SayingWire>,
) -> Result<(StatusCode, axum::Json<Heard>), ApiError> {
    on_behalf::may_say(&room, &caller, &task_id).await?;
    let saying = TaskMessage {
        message: said::message("text", &wire.text)?,
        mode: wire.mode,
        from: caller.speaks_as()?,
        key: idempotency::key(&caller, "http-said", &headers)?,
    };
    let orchestrator = &room.doors.orchestrator;
    orchestrator.check_budget_for_message(caller.payer().as_deref(), &task_id, &saying).await?;
    let interaction_id = orchestrator.send_message(&task_id, saying).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Heard { interaction_id })))
}

/// What came of a call of a tool that the client runs.
#[derive(Deserialize, JsonSchema)]
#[schemars(example = json!({ "tool_call_id": "c1", "content": "sun" }))]
pub(crate) struct Outcome {
    /// Which call.
    tool_call_id: ToolCallId,
    /// What the model gets to see: a text, or a list of blocks.
    #[schemars(with = "BlocksOrText")]
    content: Box<RawValue>,
    /// It ran and failed.
    #[serde(default)]
    is_error: bool,
}

pub(crate) async fn tool_result(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
    Json(outcome): Json<Outcome>,
) -> Answer {
    let content = said::blocks("content", &outcome.content)?;
    let result = ToolResult { content, is_error: outcome.is_error };
    room.doors.orchestrator.tool_result(&task_id, &outcome.tool_call_id, result).await?;
    room.summary(&task_id).await.map(axum::Json)
}
