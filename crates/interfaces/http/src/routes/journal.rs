//! `GET /v1/journal`: events that the journal has already, page by page. A client that waits for new events
//! opens a stream.

use std::sync::Arc;

use antiphon_api::{JournalPage, JournalPageQuery};
use antiphon_core::port::{Page, Read};
use antiphon_core::{ErrorCode, Event};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, QueryParams};
use axum::extract::State;

use crate::routes::page_size;

/// A page ends with the event that takes it beyond this many bytes.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let page = get_with(page, |route| {
        let summary = "A page of the events that the journal has already, of one task or of all.";
        route.describe("read_journal", Tag::Tasks, summary).fails(&[400, 404])
    });
    ApiRouter::new().api_route("/v1/journal", page)
}

async fn page(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<JournalPageQuery>,
) -> Result<axum::Json<JournalPage>, ApiError> {
    let limit = page_size(query.limit)?;
    match &query.task_id {
        Some(task_id) => {
            state.summary_for(&caller, task_id).await?;
        }
        None if caller.own_payer().is_some() => {
            let message = "`task_id`: this key has scope `own`: send the id of a task of its own";
            return Err(ApiError::new(ErrorCode::Forbidden, message));
        }
        None => {}
    }
    let read = Read { task_id: query.task_id, after: query.after.unwrap_or_default(), limit };
    let Page { mut events, next, head } = state.deps.orchestrator.read(read).await?;
    let kept = fitting(&events)?;
    let next = match events.get(kept.saturating_sub(1)).filter(|_| kept < events.len()) {
        Some(last) => last.position,
        None => next,
    };
    events.truncate(kept);
    Ok(axum::Json(JournalPage { events, next, head }))
}

/// Number of events until [`PAGE_BYTES_MAX`] is reached; at least one, if there is one.
fn fitting(events: &[Event]) -> Result<usize, ApiError> {
    let mut bytes = 0;
    for (index, event) in events.iter().enumerate() {
        let json = serde_json::to_vec(event)
            .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
        bytes += json.len();
        if bytes > PAGE_BYTES_MAX {
            return Ok(index + 1);
        }
    }
    Ok(events.len())
}
