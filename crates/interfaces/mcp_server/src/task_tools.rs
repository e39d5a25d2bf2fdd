//! The tools that look after tasks of the caller.

use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{ErrorCode, TaskId, TaskStatus, TaskSummary};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::service::RequestContext;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::backend::McpRequest;
use crate::call::{OnCancel, Wait};
use crate::failure::Failure;
use crate::task_view::{TaskView, summary_json};
use crate::tools::{
    LIST_DEFAULT, LIST_MAX, TASK_CANCEL, TASK_GET, TASK_LIST, TASK_SEND, TASK_WAIT, WAIT_S_MAX,
};

/// Tasks that are read at a time.
const READ_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// How often they are read for one list, which may then be shorter than its limit.
const READS_MAX: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ByTask {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WaitFor {
    task_id: String,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SendTo {
    task_id: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    limit: Option<usize>,
    status: Option<TaskStatus>,
    before: Option<String>,
}

/// Calls the tool `name`; `None` when it is not one of these.
pub(crate) async fn call(
    request: &McpRequest,
    context: &RequestContext<RoleServer>,
    name: &str,
    arguments: Option<JsonObject>,
) -> Option<Result<CallToolResult, Failure>> {
    Some(match name {
        TASK_GET => get(request, arguments).await,
        TASK_WAIT => wait(request, context, arguments).await,
        TASK_LIST => list(request, arguments).await,
        TASK_SEND => send(request, arguments).await,
        TASK_CANCEL => cancel(request, arguments).await,
        _ => return None,
    })
}

async fn get(
    request: &McpRequest,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, Failure> {
    let ByTask { task_id } = parse(arguments)?;
    let summary = request.task(&task_id).await?;
    Ok(TaskView::of(&request.reader().await?, summary).await?.tool_result())
}

async fn wait(
    request: &McpRequest,
    context: &RequestContext<RoleServer>,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, Failure> {
    let WaitFor { task_id, timeout_seconds } = parse(arguments)?;
    if timeout_seconds.is_some_and(|seconds| seconds > WAIT_S_MAX) {
        return Err(Failure::invalid(format!("`timeoutSeconds`: at most {WAIT_S_MAX}")));
    }
    let until = timeout_seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let summary = request.task(&task_id).await?;
    let feed = request.follow(&summary).await?;
    let wait = Wait::new(request, context, summary.task_id, feed, OnCancel::Leave);
    Ok(wait.until(until).run().await?.tool_result())
}

async fn send(
    request: &McpRequest,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, Failure> {
    let SendTo { task_id, message } = parse(arguments)?;
    if message.trim().is_empty() {
        return Err(Failure::invalid("`message`: it is blank"));
    }
    let summary = request.task(&task_id).await?;
    request.send(&summary, message).await?;
    Ok(TaskView::read(&request.reader().await?, &summary.task_id).await?.tool_result())
}

async fn cancel(
    request: &McpRequest,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, Failure> {
    let ByTask { task_id } = parse(arguments)?;
    let summary = request.task(&task_id).await?;
    cancel_task(request, &summary).await?;
    Ok(TaskView::read(&request.reader().await?, &summary.task_id).await?.tool_result())
}

/// Cancels a task. One that was canceled before stays canceled. An agent's key may not.
pub(crate) async fn cancel_task(request: &McpRequest, task: &TaskSummary) -> Result<(), Failure> {
    if request.caller.agent().is_some() {
        let message = "an agent's key cancels no task: use a person's key";
        return Err(Failure::new(ErrorCode::Forbidden, message));
    }
    match request.cancel(&task.task_id).await {
        Ok(()) => Ok(()),
        Err(error) => {
            let now = request.task(task.task_id.as_str()).await?.status;
            match now {
                TaskStatus::Canceled => Ok(()),
                TaskStatus::Completed | TaskStatus::Failed => {
                    let message = format!("the task has ended: {}", now.as_str());
                    Err(Failure::new(ErrorCode::Conflict, message))
                }
                TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => Err(error),
            }
        }
    }
}

async fn list(
    request: &McpRequest,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, Failure> {
    let List { limit, status, before } = parse(arguments)?;
    let limit = limit.unwrap_or(LIST_DEFAULT);
    if !(1..=LIST_MAX).contains(&limit) {
        return Err(Failure::invalid(format!("`limit`: 1 to {LIST_MAX}")));
    }
    let before = before.map(|before| TaskId::parse(&before).map_err(|_| Failure::no_task()));
    let statuses = status.into_iter().collect();
    let (tasks, next) = own_tasks(request, before.transpose()?, statuses, limit).await?;
    let lines: Vec<String> = tasks
        .iter()
        .map(|task| {
            format!("{} {} {}: {}", task.task_id, task.status.as_str(), task.agent, task.title)
        })
        .collect();
    let text = if lines.is_empty() { "No tasks.".to_owned() } else { lines.join("\n") };
    let shown: Vec<Value> = tasks.iter().map(summary_json).collect();
    let mut result = CallToolResult::structured(json!({ "tasks": shown, "before": next }));
    result.content = vec![ContentBlock::text(text)];
    Ok(result)
}

/// Root tasks of the caller created before a task, the newest first, and where the next page begins.
pub(crate) async fn own_tasks(
    request: &McpRequest,
    before: Option<TaskId>,
    statuses: Vec<TaskStatus>,
    limit: usize,
) -> Result<(Vec<TaskSummary>, Option<TaskId>), Failure> {
    let (reader, agents) = (request.reader().await?, request.agents().await?);
    let (mut tasks, mut before) = (Vec::new(), before);
    for _ in 0..READS_MAX {
        let filter = TaskFilter {
            statuses: statuses.clone(),
            payer: request.seen_payer(),
            roots: true,
            without_records: true,
            before,
            ..TaskFilter::default()
        };
        let query = TaskQuery { which: TaskSelector::Matching(filter), limit: READ_MAX };
        let page = reader.tasks(query).await?;
        let is_last = page.len() < READ_MAX.get();
        before = page.last().map(|task| task.task_id.clone());
        tasks.extend(page.into_iter().filter(|task| request.may_see(task, &agents)));
        if tasks.len() > limit {
            tasks.truncate(limit);
            let next = tasks.last().map(|task| task.task_id.clone());
            return Ok((tasks, next));
        }
        if is_last {
            return Ok((tasks, None));
        }
    }
    Ok((tasks, before))
}

fn parse<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, Failure> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(arguments)
        .map_err(|error| Failure::invalid(format!("the arguments: {error}")))
}
