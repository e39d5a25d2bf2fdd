//! `GET /v1/tasks/{id}/diff`: changes that the file tools of a task made, as JSON or as text.

use std::sync::Arc;

use antiphon_api::{DiffQuery, TaskDiff};
use antiphon_core::TaskId;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, PathId, QueryParams};
use antiphon_project::{DiffScope, task_diff};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::tree_too_large;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let diff = get_with(diff, |route| {
        let summary = "Changes that the file tools of a task made.";
        let route = route.describe("show_diff", Tag::Tasks, summary).fails(&[400]);
        let route = route.response_with::<200, axum::Json<TaskDiff>, _>(|response| {
            response.description(
                "The changes; with `Accept: text/x-diff` or `text/plain`, as one text.",
            )
        });
        route.or_media_type(200, "text/x-diff").or_media_type(200, "text/plain")
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/diff", diff)
}

async fn diff(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
    QueryParams(query): QueryParams<DiffQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    state.summary(&task_id).await?;
    let scope = if query.below { DiffScope::Tree } else { DiffScope::Task };
    let found = task_diff(&state.deps.orchestrator, &task_id, scope).await?;
    let found = found.ok_or_else(tree_too_large)?;
    Ok(match accepted_text(&headers) {
        Some(content_type) => ([(CONTENT_TYPE, content_type)], found.text()).into_response(),
        None => axum::Json(found).into_response(),
    })
}

/// The text type that the client accepts, if any.
fn accepted_text(headers: &HeaderMap) -> Option<&'static str> {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok())?;
    let mut types = accepted.split([',', ';']).map(str::trim);
    types.find_map(|media_type| match media_type.to_ascii_lowercase().as_str() {
        "text/x-diff" => Some("text/x-diff; charset=utf-8"),
        "text/plain" => Some("text/plain; charset=utf-8"),
        _ => None,
    })
}
