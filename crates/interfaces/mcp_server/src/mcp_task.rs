//! Tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28), and the state of a call that asks its client:
//! both name the task by its own id, which is no secret. What a caller may do with it is checked each time.

use antiphon_core::{Approval, TaskId, TaskStatus, TaskSummary};
use antiphon_runtime::Orchestrator;
use chrono::SecondsFormat;
use rmcp::RoleServer;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ElicitResult, GetTaskResult, InputResponses, Task, TaskPayload,
    TaskStatus as McpStatus,
};
use rmcp::service::RequestContext;
use serde_json::json;

use crate::agent_offer::AgentOffer;
use crate::approval::{self, Answer};
use crate::backend::McpRequest;
use crate::call::may_ask;
use crate::failure::Failure;
use crate::task_view::{TaskView, object, summary};

/// How often a client should ask for the state of a task, in milliseconds.
const POLL_MS: u64 = 1000;

/// Begins the state of a call.
const STATE: &str = "task:";

/// The state of a call that waits for answers of its client.
pub(crate) fn request_state(task_id: &TaskId) -> String {
    format!("{STATE}{task_id}")
}

/// The task of a call that comes back with its state.
pub(crate) async fn of_request_state(
    request: &McpRequest,
    agent: &AgentOffer,
    state: &str,
) -> Result<TaskSummary, Failure> {
    let wrong = || Failure::invalid("`requestState` is of no call of this tool: omit it");
    let task = request.task(state.strip_prefix(STATE).ok_or_else(wrong)?).await?;
    if task.agent == agent.name.as_str() { Ok(task) } else { Err(wrong()) }
}

/// Decides the approvals that a client's answers are about. All are checked before the first one decides.
pub(crate) async fn answer(
    request: &McpRequest,
    task_id: &TaskId,
    answers: InputResponses,
) -> Result<(), Failure> {
    if answers.is_empty() {
        return Ok(());
    }
    let reader = request.reader().await?;
    let mut decisions = Vec::new();
    for (id, answer) in answers {
        let asked = approval::pending(&reader, task_id).await?;
        let asked: Approval =
            asked.filter(|asked| asked.approval_id.as_str() == id).ok_or_else(|| {
                Failure::invalid(format!("`inputResponses.{id}`: no such question is open"))
            })?;
        let answer: ElicitResult = serde_json::from_value(answer)
            .map_err(|error| Failure::invalid(format!("`inputResponses.{id}`: {error}")))?;
        match approval::answer(&asked, answer)? {
            Answer::Decided(reply) => decisions.push((asked.approval_id, reply)),
            Answer::Dismissed => {}
        }
    }
    for (id, reply) in decisions {
        request.decide(&id, reply).await?;
    }
    Ok(())
}

/// What a call returns at once.
pub(crate) async fn created(
    reader: &Orchestrator,
    task_id: &TaskId,
) -> Result<CreateTaskResult, Failure> {
    let summary = summary(reader, task_id).await?;
    Ok(CreateTaskResult::new(task(&summary, McpStatus::Working)))
}

/// The state of a task.
pub(crate) async fn get(
    request: &McpRequest,
    context: &RequestContext<RoleServer>,
    task_id: &str,
) -> Result<GetTaskResult, Failure> {
    let summary = request.task(task_id).await?;
    let view = TaskView::of(&request.reader().await?, summary).await?;
    let result = view.tool_result();
    let note =
        result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone());
    let payload = match (view.summary.status, &view.approval) {
        (TaskStatus::Completed | TaskStatus::Failed, _) => {
            TaskPayload::Completed { result: object(json!(result)) }
        }
        (TaskStatus::Canceled, _) => TaskPayload::Cancelled,
        (TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired, Some(asked))
            if may_ask(request, context) =>
        {
            TaskPayload::InputRequired { input_requests: approval::input_requests(asked)? }
        }
        (TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired, _) => {
            TaskPayload::Working
        }
    };
    let waits = view.summary.status == TaskStatus::InputRequired || view.approval.is_some();
    let mut task = task(&view.summary, payload.status());
    if waits {
        task.status_message = note;
    }
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

fn task(summary: &TaskSummary, status: McpStatus) -> Task {
    let at = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    Task::new(
        summary.task_id.to_string(),
        status,
        at(summary.created_at),
        at(summary.last_event_at),
    )
    .with_poll_interval_ms(POLL_MS)
}
