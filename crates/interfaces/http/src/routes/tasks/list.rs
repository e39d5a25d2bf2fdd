//! Lists tasks by page, the newest first. The cursor is a task, so that new tasks do not shift later pages.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{TaskPage, TaskQuery as ListQuery};
use antiphon_core::TaskStatus;
use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_interface_transport::{ApiError, AppState, Caller, QueryParams};
use axum::extract::State;

use crate::routes::{check_cursor, cut_page, page_size};

/// Tasks with a prefix that are looked through for those of a key that sees its own work alone.
const PREFIX_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Statuses of tasks that have not ended.
const UNFINISHED: &str = "pending,running,input_required";

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<axum::Json<TaskPage>, ApiError> {
    let limit = page_size(query.limit)?;
    let own = caller.own_payer();
    let by_prefix = query.id_prefix.is_some();
    if let Some(cursor) = query.cursor.clone() {
        check_cursor(&state, &caller, &cursor).await?;
    }
    let which = match &query.id_prefix {
        None => TaskSelector::Matching(TaskFilter { payer: own.clone(), ..filter(query)? }),
        Some(prefix) => {
            let alone = ListQuery {
                limit: query.limit,
                id_prefix: Some(prefix.clone()),
                ..ListQuery::default()
            };
            if query != alone {
                let message = "`id_prefix` selects by itself: send it with `limit` alone";
                return Err(ApiError::invalid(message));
            }
            TaskSelector::IdPrefix(prefix.clone())
        }
    };
    // One more task says that there is another page.
    let one_more = limit.saturating_add(1);
    // A prefix selects among all tasks: those of others are left out here.
    let read = if by_prefix && own.is_some() { PREFIX_TASKS_MAX } else { one_more };
    let mut tasks = state.deps.orchestrator.tasks(TaskQuery { which, limit: read }).await?;
    tasks.retain(|task| own.is_none() || task.payer == own);
    // A prefix has no second page: a client gives a longer one.
    let last = cut_page(&mut tasks, limit).filter(|_| !by_prefix);
    let next_cursor = last.map(|last| last.task_id.clone());
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
        payer: None,
        roots: query.tops,
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
