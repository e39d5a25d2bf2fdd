//! `GET /v1/requests/{id}`: the status of a request to an agent. A client may wait for the answer, up to a
//! limit. Waiting ends when the server shuts down.

use std::sync::Arc;
use std::time::Duration;

use antiphon_api::{RequestStatus, RequestWaitQuery};
use antiphon_core::{ErrorCode, InteractionId};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, QueryParams};
use antiphon_project::{request_answer, request_status};
use axum::extract::{Path, State};
use serde_json::Value;

use crate::routes::tasks::wait::{shutting_down, wait_time};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let show = get_with(show, |route| {
        let summary = "The status of a request to an agent.";
        route.describe("show_request", Tag::Agents, summary).fails(&[404])
    });
    ApiRouter::new().api_route("/v1/requests/{id}", show)
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<RequestWaitQuery>,
) -> Result<axum::Json<RequestStatus>, ApiError> {
    let none = || ApiError::new(ErrorCode::NotFound, format!("there is no request `{id}`"));
    let id: InteractionId =
        serde_json::from_value(Value::String(id.clone())).map_err(|_| none())?;
    let orchestrator = &state.deps.orchestrator;
    let head = orchestrator.head().await?;
    let agents = state.deps.task_factory.agents();
    let status = request_status(orchestrator, &agents, id).await?.ok_or_else(none)?;
    let Some(wait_s) = query.wait_s else { return Ok(axum::Json(status)) };
    let timeout: Duration = wait_time(Some(wait_s))?;
    if status.result.is_some() {
        return Ok(axum::Json(status));
    }
    let answered = request_answer(orchestrator, id, head);
    tokio::select! {
        () = state.closing.cancelled() => Err(shutting_down()),
        answered = tokio::time::timeout(timeout, answered) => match answered {
            Ok(answered) => Ok(axum::Json(answered?)),
            Err(_) => {
                let status = request_status(orchestrator, &agents, id).await?;
                status.map(axum::Json).ok_or_else(none)
            }
        },
    }
}
