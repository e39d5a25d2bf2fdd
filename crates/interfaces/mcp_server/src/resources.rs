//! Resources: the tasks of the caller, and the sessions that they belong to, as JSON.
//!
//! | address                        | is                                           |
//! |--------------------------------|----------------------------------------------|
//! | `antiphon://tasks/ID`          | a task with its result; can be subscribed to |
//! | `antiphon://sessions/ID`       | a session with its messages                  |

use std::num::NonZeroUsize;

use antiphon_core::port::SessionQuery;
use antiphon_core::{EventBody, SessionId, TaskId};
use antiphon_project::{session_of, session_summary};
use rmcp::model::{
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use crate::backend::McpRequest;
use crate::failure::Failure;
use crate::feed::{Change, Feed};
use crate::task_tools::own_tasks;
use crate::task_view::{TaskView, summary};

const TASKS: &str = "antiphon://tasks/";
const SESSIONS: &str = "antiphon://sessions/";
const JSON: &str = "application/json";

/// Resources of a page.
const PAGE: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// Bytes of a session as JSON, at most. A longer one is read with `antiphon sessions show`.
const SESSION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The place where a page of the list begins: tasks come first, then sessions.
enum Cursor {
    Tasks(Option<TaskId>),
    Sessions(Option<TaskId>),
}

impl Cursor {
    fn parse(text: Option<&str>) -> Result<Self, Failure> {
        let wrong = || Failure::invalid("`cursor`: use `nextCursor` of the page before");
        let Some(text) = text else { return Ok(Self::Tasks(None)) };
        let (list, before) = text.split_once(':').ok_or_else(wrong)?;
        let before = match before {
            "" => None,
            id => Some(TaskId::parse(id).map_err(|_| wrong())?),
        };
        match list {
            "tasks" => Ok(Self::Tasks(before)),
            "sessions" => Ok(Self::Sessions(before)),
            _ => Err(wrong()),
        }
    }
}

/// A page of the resources of the caller, the newest first.
pub(crate) async fn list(
    request: &McpRequest,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, Failure> {
    let (resources, next) = match Cursor::parse(cursor)? {
        Cursor::Tasks(before) => {
            let (tasks, next) = own_tasks(request, before, Vec::new(), PAGE.get()).await?;
            let next = next.map_or("sessions:".to_owned(), |next| format!("tasks:{next}"));
            let resource = |task: &antiphon_core::TaskSummary| {
                Resource::new(format!("{TASKS}{}", task.task_id), format!("task {}", task.task_id))
                    .with_title(task.title.clone())
                    .with_description(format!("{}: {}", task.agent, task.status.as_str()))
                    .with_mime_type(JSON)
            };
            (tasks.iter().map(resource).collect(), Some(next))
        }
        Cursor::Sessions(before) => sessions(request, before).await?,
    };
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next;
    Ok(result)
}

async fn sessions(
    request: &McpRequest,
    before: Option<TaskId>,
) -> Result<(Vec<Resource>, Option<String>), Failure> {
    let (reader, agents) = (request.reader().await?, request.agents().await?);
    let page = reader.sessions(SessionQuery { before, limit: PAGE }).await?;
    let next = (page.len() == PAGE.get()).then(|| page.last()).flatten();
    let next = next.map(|session| format!("sessions:{}", session.last_task));
    let mut shown = Vec::new();
    for session in page {
        let last = summary(&reader, &session.last_task).await?;
        if request.may_see(&last, &agents) {
            let name = format!("session {}", session.session_id);
            shown.push(
                Resource::new(format!("{SESSIONS}{}", session.session_id), name)
                    .with_title(session.title)
                    .with_mime_type(JSON),
            );
        }
    }
    Ok((shown, next))
}

/// How the addresses are formed.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: String, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(JSON)
    };
    vec![
        template(format!("{TASKS}{{taskId}}"), "task", "A task with its result."),
        template(format!("{SESSIONS}{{sessionId}}"), "session", "A session with its messages."),
    ]
}

/// Reads a resource.
pub(crate) async fn read(request: &McpRequest, uri: &str) -> Result<ReadResourceResult, Failure> {
    let json = if let Some(id) = uri.strip_prefix(TASKS) {
        let task = request.task(id).await.map_err(|error| missing(uri, error))?;
        TaskView::of(&request.reader().await?, task).await?.json()
    } else if let Some(id) = uri.strip_prefix(SESSIONS) {
        let last = request.last_task(id).await.map_err(|error| missing(uri, error))?;
        session(request, &last.session_id).await?
    } else {
        return Err(no_resource(uri));
    };
    let text = json.to_string();
    if text.len() > SESSION_BYTES_MAX {
        let message =
            format!("it has more than {SESSION_BYTES_MAX} bytes: use `antiphon sessions show`");
        return Err(Failure::invalid(message));
    }
    let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn session(request: &McpRequest, id: &SessionId) -> Result<serde_json::Value, Failure> {
    let reader = request.reader().await?;
    let found = session_summary(&reader, id).await?;
    let found = found.ok_or_else(|| Failure::not_found("there is no such session"))?;
    let (title, status, tasks) = (found.title.clone(), found.status, found.tasks);
    let session = session_of(&reader, found).await?;
    Ok(json!({
        "sessionId": session.id, "title": title, "status": status, "tasks": tasks,
        "createdAt": session.created_at, "updatedAt": session.updated_at,
        "messages": session.messages,
    }))
}

/// Whether an address is of a task, and so can be subscribed to.
pub(crate) fn is_task(uri: &str) -> bool {
    uri.strip_prefix(TASKS).is_some_and(|id| TaskId::parse(id).is_ok())
}

/// A resource whose changes a client hears of.
pub(crate) struct Watched {
    feed: Feed,
}

/// Watches a task of the caller from now on.
pub(crate) async fn watch(request: &McpRequest, uri: &str) -> Result<Watched, Failure> {
    let Some(id) = uri.strip_prefix(TASKS) else {
        let message = format!("`{uri}`: only tasks can be subscribed to, as {TASKS}ID");
        return Err(Failure::invalid(message));
    };
    let task = request.task(id).await.map_err(|error| missing(uri, error))?;
    Ok(Watched { feed: request.follow(&task).await? })
}

impl Watched {
    /// Waits for a change of what the resource shows. False when there can be none any more.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            match self.feed.next().await {
                Ok(Change::Event(event)) => {
                    if matches!(&event.body, EventBody::StatusChanged(_)) {
                        return true;
                    }
                }
                Ok(Change::Asked(_) | Change::Decided(_)) => return true,
                Err(error) => {
                    tracing::debug!(error = error.message, "a subscription has ended");
                    return false;
                }
            }
        }
    }
}

fn missing(uri: &str, error: Failure) -> Failure {
    match error.code {
        antiphon_core::ErrorCode::NotFound => no_resource(uri),
        antiphon_core::ErrorCode::InvalidRequest
        | antiphon_core::ErrorCode::Unauthorized
        | antiphon_core::ErrorCode::Forbidden
        | antiphon_core::ErrorCode::Conflict
        | antiphon_core::ErrorCode::RateLimitExceeded
        | antiphon_core::ErrorCode::InternalError
        | antiphon_core::ErrorCode::ServiceUnavailable
        | antiphon_core::ErrorCode::InvalidStateTransition
        | antiphon_core::ErrorCode::InvalidMessage
        | antiphon_core::ErrorCode::DomainViolation => error,
    }
}

fn no_resource(uri: &str) -> Failure {
    Failure::not_found(format!("there is no resource `{uri}`: see `resources/list`"))
}
