//! Orders to a task: end, rest, go on, hear this, here is your result.

use std::sync::Arc;

use antiphon_core::{HandlingMode, InteractionId, TaskId, TaskSummary, ToolCallId, ToolResult};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api_error::ApiError;
use crate::json::Json;
use crate::named::Named;
use crate::room::Room;
use crate::said;

type Answer = Result<axum::Json<TaskSummary>, ApiError>;

/// Ends a task and everything below it. When this is answered, the journal says so.
pub(crate) async fn cancel(State(room): State<Arc<Room>>, Named(task_id): Named<TaskId>) -> Answer {
    room.doors.orchestrator.cancel(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn pause(State(room): State<Arc<Room>>, Named(task_id): Named<TaskId>) -> Answer {
    room.doors.orchestrator.pause(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

pub(crate) async fn resume(State(room): State<Arc<Room>>, Named(task_id): Named<TaskId>) -> Answer {
    room.doors.orchestrator.resume(&task_id).await?;
    room.summary(&task_id).await.map(axum::Json)
}

#[derive(Deserialize)]
pub(crate) struct Saying {
    text: Box<RawValue>,
    #[serde(default)]
    mode: HandlingMode,
}

#[derive(Serialize)]
pub(crate) struct Heard {
    interaction_id: InteractionId,
}

pub(crate) async fn say(
    State(room): State<Arc<Room>>,
    Named(task_id): Named<TaskId>,
    Json(saying): Json<Saying>,
) -> Result<(StatusCode, axum::Json<Heard>), ApiError> {
    let message = said::message("text", &saying.text)?;
    let interaction_id = room.doors.orchestrator.send(&task_id, message, saying.mode).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Heard { interaction_id })))
}

#[derive(Deserialize)]
pub(crate) struct Outcome {
    tool_call_id: ToolCallId,
    content: Box<RawValue>,
    #[serde(default)]
    is_error: bool,
}

pub(crate) async fn tool_result(
    State(room): State<Arc<Room>>,
    Named(task_id): Named<TaskId>,
    Json(outcome): Json<Outcome>,
) -> Answer {
    let content = said::blocks("content", &outcome.content)?;
    let result = ToolResult { content, is_error: outcome.is_error };
    room.doors.orchestrator.tool_result(&task_id, &outcome.tool_call_id, result).await?;
    room.summary(&task_id).await.map(axum::Json)
}
