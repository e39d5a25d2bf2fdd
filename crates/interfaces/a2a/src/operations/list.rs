//! `ListTasks`: newest updates first, by page.
//!
//! Tasks are stored in the order of their creation. The newest [`LISTED_MAX`] tasks that the caller may see are read and
//! ordered by their last event; older ones are not listed. The cursor is the last task of the page and its time.

use std::num::NonZeroUsize;

use a2a::{ListTasksRequest, ListTasksResponse, TaskState};
use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{SessionId, TaskId, TaskStatus, TaskSummary};
use chrono::{DateTime, Utc};

use super::AgentRequest;
use crate::error::A2aError;
use crate::exposure::may_see;
use crate::task_view::{Extent, check_history};

/// Tasks that are listed, at most.
const LISTED_MAX: usize = 10_000;

/// Tasks that are read at a time.
const READ: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Tasks of a page when the request does not say, and at most.
const PAGE_DEFAULT: i32 = 50;
const PAGE_MAX: i32 = 100;

pub(crate) async fn list(
    request: &AgentRequest,
    params: ListTasksRequest,
) -> Result<ListTasksResponse, A2aError> {
    check_history(params.history_length)?;
    let page_size = params.page_size.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&page_size) {
        return Err(A2aError::param("pageSize", format!("1 to {PAGE_MAX}")));
    }
    let cursor = params.page_token.as_deref().filter(|token| !token.is_empty());
    let cursor = cursor.map(Cursor::parse).transpose()?;
    let mut tasks = matching(request, &params).await?;
    tasks.sort_unstable_by(|one, other| Cursor::of(other).cmp(&Cursor::of(one)));
    let total_size = i32::try_from(tasks.len()).unwrap_or(i32::MAX);
    if let Some(cursor) = &cursor {
        tasks.retain(|task| Cursor::of(task) < *cursor);
    }
    let size = usize::try_from(page_size).unwrap_or_default();
    let more = tasks.len() > size;
    tasks.truncate(size);
    let next = tasks.last().filter(|_| more).map(|last| Cursor::of(last).text());
    let artifacts = params.include_artifacts.unwrap_or(false);
    // A list without `historyLength` has no history: reading it takes long.
    let extent = Extent { history: Some(params.history_length.unwrap_or(0)), artifacts };
    let mut shown = Vec::with_capacity(tasks.len());
    for task in &tasks {
        shown.push(request.view(task, extent).await?);
    }
    Ok(ListTasksResponse {
        tasks: shown,
        next_page_token: next.unwrap_or_default(),
        page_size,
        total_size,
    })
}

/// Tasks that the caller may see and the filter selects.
async fn matching(
    request: &AgentRequest,
    params: &ListTasksRequest,
) -> Result<Vec<TaskSummary>, A2aError> {
    let context = params.context_id.as_deref().filter(|context| !context.is_empty());
    let session = context.map(SessionId::parse).transpose();
    // No session has an id that is none.
    let Ok(session) = session else { return Ok(Vec::new()) };
    let statuses = match params.status.as_ref().map(statuses) {
        None => Vec::new(),
        Some(statuses) if statuses.is_empty() && params.status != Some(TaskState::Unspecified) => {
            return Ok(Vec::new());
        }
        Some(statuses) => statuses,
    };
    let mut filter = TaskFilter {
        statuses,
        agent: Some(request.agent.to_string()),
        session,
        payer: request.caller.seen_payer(),
        roots: true,
        without_records: true,
        before: None,
    };
    let after = params.status_timestamp_after;
    let is_listed = |task: &TaskSummary| {
        may_see(&request.caller, &request.agent, task)
            && after.is_none_or(|after| task.last_event_at >= after)
    };
    let mut tasks = Vec::new();
    while tasks.len() < LISTED_MAX {
        let which = TaskSelector::Matching(filter.clone());
        let query = TaskQuery { which, limit: READ };
        let page = request.state.deps.orchestrator.tasks(query).await?;
        let is_last = page.len() < READ.get();
        filter.before = page.last().map(|task| task.task_id.clone());
        tasks.extend(page.into_iter().filter(is_listed));
        if is_last {
            break;
        }
    }
    tasks.truncate(LISTED_MAX);
    Ok(tasks)
}

/// Our statuses of a state.
fn statuses(state: &TaskState) -> Vec<TaskStatus> {
    match state {
        TaskState::Submitted => vec![TaskStatus::Pending],
        TaskState::Working => vec![TaskStatus::Running],
        TaskState::InputRequired => vec![TaskStatus::InputRequired],
        TaskState::Completed => vec![TaskStatus::Completed],
        TaskState::Failed => vec![TaskStatus::Failed],
        TaskState::Canceled => vec![TaskStatus::Canceled],
        TaskState::Unspecified | TaskState::Rejected | TaskState::AuthRequired => Vec::new(),
    }
}

/// The place of a task in the list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    at: DateTime<Utc>,
    task_id: TaskId,
}

impl Cursor {
    fn of(task: &TaskSummary) -> Self {
        Self { at: task.last_event_at, task_id: task.task_id.clone() }
    }

    fn text(&self) -> String {
        format!("{}.{}", self.at.timestamp_nanos_opt().unwrap_or_default(), self.task_id)
    }

    fn parse(text: &str) -> Result<Self, A2aError> {
        let wrong = || A2aError::param("pageToken", "use `nextPageToken` of the previous page");
        let (at, task_id) = text.split_once('.').ok_or_else(wrong)?;
        let at = DateTime::from_timestamp_nanos(at.parse().map_err(|_| wrong())?);
        Ok(Self { at, task_id: TaskId::parse(task_id).map_err(|_| wrong())? })
    }
}
