//! Tasks, page by page, the newest first. A page is the same whatever is added meanwhile: the next one
//! begins behind a task, not behind a number.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{SessionId, TaskId, TaskStatus, TaskSummary};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::named::Asked;
use crate::room::AppState;
use crate::tasks::{LISTED, LISTED_MAX};

/// Those that have not ended.
const UNFINISHED: &str = "pending,running,input_required";

/// Which tasks.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TasksQuery")]
pub(crate) struct ListQuery {
    /// How many, at most; 100 when absent.
    #[schemars(range(max = LISTED_MAX))]
    limit: Option<NonZeroUsize>,
    /// Only those with one of these, with commas between them.
    status: Option<String>,
    /// Only those that have not ended.
    #[serde(default)]
    unfinished: bool,
    /// Only those that this agent works on.
    agent: Option<String>,
    /// Only those of this conversation.
    session_id: Option<SessionId>,
    /// Only those that nobody dispatched.
    #[serde(default)]
    tops: bool,
    /// Also what is kept of orders.
    #[serde(default)]
    all: bool,
    /// The last task of the page before.
    cursor: Option<TaskId>,
}

/// Tasks, at a glance.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TaskPage {
    /// The newest first.
    tasks: Vec<TaskSummary>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
}

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
        roots: query.tops,
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
