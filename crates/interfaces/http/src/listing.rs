//! Tasks, page by page, the newest first. A page is the same whatever is added meanwhile: the next one
//! begins behind a task, not behind a number.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{LISTED_MAX, TaskPage, TaskQuery as ListQuery};
use antiphon_core::TaskStatus;
use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use axum::extract::State;

use crate::api_error::ApiError;
use crate::named::Asked;
use crate::room::AppState;
use crate::tasks::LISTED;

/// Those that have not ended.
const UNFINISHED: &str = "pending,running,input_required";

pub(crate) async fn list(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<ListQuery>,
) -> Result<axum::Json<TaskPage>, ApiError> {
    let limit = query.limit.map_or(LISTED, NonZeroUsize::get);
    if limit > LISTED_MAX {
        return Err(ApiError::invalid(format!("`limit`: {LISTED_MAX} at most")));
    }
    if let Some(cursor) = query.cursor.clone() {
        let there = TaskQuery { which: TaskSelector::One(cursor), limit: NonZeroUsize::MIN };
        if room.doors.orchestrator.tasks(there).await?.is_empty() {
            let message = "`cursor`: take it from `next_cursor` of the page before";
            return Err(ApiError::invalid(message));
        }
    }
    let which = TaskSelector::Matching(filter(query)?);
    // One more says whether there is another page.
    let one_more = NonZeroUsize::MIN.saturating_add(limit);
    let mut tasks = room.doors.orchestrator.tasks(TaskQuery { which, limit: one_more }).await?;
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    let next_cursor = tasks.last().filter(|_| more).map(|last| last.task_id.clone());
    Ok(axum::Json(TaskPage { tasks, next_cursor }))
}

fn filter(query: ListQuery) -> Result<TaskFilter, ApiError> {
    let words = match (query.status.as_deref(), query.unfinished) {
        (Some(_), true) => {
            return Err(ApiError::invalid("`status` and `unfinished`: only one of them"));
        }
        (None, true) => Some(UNFINISHED),
        (words, false) => words,
    };
    let statuses = words.map(|words| words.split(',').map(status).collect::<Result<_, _>>());
    Ok(TaskFilter {
        statuses: statuses.transpose()?.unwrap_or_default(),
        agent: query.agent,
        session: query.session_id,
        tops: query.tops,
        without_records: !query.all,
        before: query.cursor,
    })
}

fn status(word: &str) -> Result<TaskStatus, ApiError> {
    let found = TaskStatus::ALL.into_iter().find(|status| status.as_str() == word.trim());
    found.ok_or_else(|| {
        let known: Vec<&str> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
        ApiError::invalid(format!("`status`: `{word}` is none of {}", known.join(", ")))
    })
}
