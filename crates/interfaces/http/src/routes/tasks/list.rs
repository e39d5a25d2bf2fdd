//! Lists tasks by page, the newest first. The cursor is a task, so that new tasks do not shift later pages.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{LISTED_MAX, TaskPage, TaskQuery as ListQuery};
use antiphon_core::TaskStatus;
use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{SessionId, TaskId, TaskStatus, TaskSummary};
use antiphon_interface_transport::{ApiError, AppState, QueryParams};
use axum::extract::State;

use crate::routes::{PAGE_MAX, page_size};

/// Statuses of tasks that have not ended.
const UNFINISHED: &str = "pending,running,input_required";

/// Which tasks to list.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TasksQuery")]
pub(crate) struct ListQuery {
    /// Tasks in the page, at most; 100 when absent.
    #[schemars(range(max = PAGE_MAX))]
    limit: Option<NonZeroUsize>,
    /// Only tasks with one of these statuses, separated by commas: `pending`, `running`, `input_required`,
    /// `completed`, `failed`, `canceled`.
    status: Option<String>,
    /// `true`: only tasks that have not ended; excludes `status`.
    #[serde(default)]
    unfinished: bool,
    /// Only tasks of this agent.
    agent: Option<String>,
    /// Only tasks of this session.
    session_id: Option<SessionId>,
    /// `true`: only tasks without a parent.
    #[serde(default)]
    tops: bool,
    /// `true`: also tasks that only record a command.
    #[serde(default)]
    all: bool,
    /// `next_cursor` of the previous page; the first page when absent.
    cursor: Option<TaskId>,
}

/// One page of tasks.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TaskPage {
    /// The newest first.
    tasks: Vec<TaskSummary>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<axum::Json<TaskPage>, ApiError> {
    let limit = page_size(query.limit)?;
    if let Some(cursor) = query.cursor.clone() {
        let existing = TaskQuery { which: TaskSelector::One(cursor), limit: NonZeroUsize::MIN };
        if state.deps.orchestrator.tasks(existing).await?.is_empty() {
            let message = "`cursor`: use `next_cursor` of the previous page";
            return Err(ApiError::invalid(message));
        }
    }
    let which = TaskSelector::Matching(filter(query)?);
    // One more task says that there is another page.
    let one_more = NonZeroUsize::MIN.saturating_add(limit);
    let mut tasks = state.deps.orchestrator.tasks(TaskQuery { which, limit: one_more }).await?;
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    let next_cursor = tasks.last().filter(|_| more).map(|last| last.task_id.clone());
    Ok(axum::Json(TaskPage { tasks, next_cursor }))
}

fn filter(query: ListQuery) -> Result<TaskFilter, ApiError> {
    let words = match (query.status.as_deref(), query.unfinished) {
        (Some(_), true) => {
            return Err(ApiError::invalid(
                "`status` and `unfinished` exclude each other: send one",
            ));
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
        ApiError::invalid(format!(
            "`status`: unknown status `{word}`; known are {}",
            known.join(", ")
        ))
    })
}
