//! Tasks as A2A shows them.
//!
//! | status                                     | state of A2A                        |
//! |--------------------------------------------|-------------------------------------|
//! | `pending`                                  | `SUBMITTED`                         |
//! | `running`                                  | `WORKING`; `INPUT_REQUIRED` while a descendant needs an approval |
//! | `input_required`                           | `INPUT_REQUIRED`                    |
//! | `completed`                                | `COMPLETED`, with the artifact `result` |
//! | `failed`                                   | `FAILED`; `REJECTED` when the model refused |
//! | `canceled`                                 | `CANCELED`                          |

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use a2a::{Artifact, Message, Part, Role, Task, TaskState, TaskStatus};
use antiphon_core::port::Read;
use antiphon_core::{
    Event, EventBody, InputBlock, Message as OwnMessage, Position, Question, StatusChanged, TaskId,
    TaskStatus as OwnStatus, TaskSummary, WaitingFor,
};
use antiphon_project::{DiffScope, task_diff};
use antiphon_runtime::Orchestrator;
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::approval;
use crate::error::A2aError;

/// Without `historyLength`, the history of a task with more events than this is left out: reading it takes long.
const HISTORY_EVENTS_MAX: u64 = 256;

/// Messages of one history, at most.
const HISTORY_MAX: usize = 1000;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Id of the artifact that holds the result of a task.
pub(crate) const RESULT: &str = "result";

/// Which parts of a task are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) history: Option<i32>,
    pub(crate) artifacts: bool,
}

/// Refuses a negative length.
pub(crate) fn check_history(length: Option<i32>) -> Result<(), A2aError> {
    match length {
        Some(length) if length < 0 => {
            Err(A2aError::param("historyLength", "it must not be negative"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A task as A2A shows it.
pub(crate) async fn task(
    orchestrator: &Orchestrator,
    summary: &TaskSummary,
    extent: Extent,
) -> Result<Task, A2aError> {
    let last = match summary.status {
        OwnStatus::Pending | OwnStatus::Running => None,
        OwnStatus::InputRequired
        | OwnStatus::Completed
        | OwnStatus::Failed
        | OwnStatus::Canceled => orchestrator.last_status(&summary.task_id).await?,
    };
    let detail = last.as_ref().and_then(|last| last.detail.as_ref());
    let status = match summary.status {
        OwnStatus::Running => running_status(orchestrator, summary).await?,
        OwnStatus::InputRequired => waiting_status(orchestrator, summary).await?,
        OwnStatus::Pending | OwnStatus::Completed | OwnStatus::Failed | OwnStatus::Canceled => {
            let change = StatusChanged {
                status: summary.status,
                detail: detail.cloned(),
                waiting_for: None,
            };
            ended_status(&summary.task_id, &change, summary.last_event_at)
        }
    };
    let artifacts =
        if extent.artifacts { Some(artifacts(orchestrator, summary, detail).await?) } else { None };
    let wanted = match extent.history {
        None if summary.seq.0 > HISTORY_EVENTS_MAX => 0,
        None => HISTORY_MAX,
        Some(length) => usize::try_from(length).unwrap_or_default().min(HISTORY_MAX),
    };
    let history = if wanted == 0 {
        None
    } else {
        Some(history(orchestrator, &summary.task_id, wanted).await?)
    };
    Ok(Task {
        id: summary.task_id.to_string(),
        context_id: summary.session_id.to_string(),
        status,
        artifacts,
        history,
        metadata: None,
    })
}

/// The artifacts of a task that has completed: its result, and the changes that its file tools made.
pub(crate) async fn artifacts(
    orchestrator: &Orchestrator,
    summary: &TaskSummary,
    detail: Option<&Value>,
) -> Result<Vec<Artifact>, A2aError> {
    if summary.status != OwnStatus::Completed {
        return Ok(Vec::new());
    }
    let mut artifacts = vec![result(detail)];
    if summary.calls > 0
        && let Some(diff) = task_diff(orchestrator, &summary.task_id, DiffScope::Task).await?
        && !diff.changes.is_empty()
    {
        let part = Part { media_type: Some("text/x-diff".to_owned()), ..Part::text(diff.text()) };
        artifacts.push(artifact("changes", vec![part]));
    }
    Ok(artifacts)
}

/// The artifact that holds a result.
fn result(detail: Option<&Value>) -> Artifact {
    let part = match detail {
        None | Some(Value::Null) => Part::text(""),
        Some(Value::String(text)) => Part::text(text.clone()),
        Some(value) => {
            Part { media_type: Some("application/json".to_owned()), ..Part::data(value.clone()) }
        }
    };
    artifact(RESULT, vec![part])
}

pub(crate) fn artifact(id: &str, parts: Vec<Part>) -> Artifact {
    Artifact {
        artifact_id: id.to_owned(),
        name: Some(id.to_owned()),
        description: None,
        parts,
        metadata: None,
        extensions: None,
    }
}

/// The status of a task that runs: a descendant may need an approval.
async fn running_status(
    orchestrator: &Orchestrator,
    summary: &TaskSummary,
) -> Result<TaskStatus, A2aError> {
    match approval::pending(orchestrator, &summary.task_id).await? {
        Some(_) => waiting_status(orchestrator, summary).await,
        None => Ok(status(TaskState::Working, None, summary.last_event_at)),
    }
}

/// The status of a task that waits for a person, a client or its budget.
pub(crate) async fn waiting_status(
    orchestrator: &Orchestrator,
    summary: &TaskSummary,
) -> Result<TaskStatus, A2aError> {
    let (text, data) = match approval::pending(orchestrator, &summary.task_id).await? {
        Some(approval) => {
            let text = match &approval.question {
                Some(Question::Choice(question)) => question.text.clone(),
                Some(Question::Plan(question)) => {
                    format!("The agent wants its plan accepted:\n\n{}", question.plan)
                }
                None => format!(
                    "The agent needs an approval of `{}`: {}",
                    approval.tool_name, approval.reason
                ),
            };
            (text, Some(approval::data(&approval)))
        }
        None => (waiting_text(summary.waiting_for).to_owned(), None),
    };
    let mut parts = vec![Part::text(text)];
    parts.extend(data.map(Part::data));
    let message = agent_message(&summary.task_id, summary.seq.0, parts);
    Ok(status(TaskState::InputRequired, Some(message), summary.last_event_at))
}

fn waiting_text(waiting_for: Option<WaitingFor>) -> &'static str {
    match waiting_for {
        Some(WaitingFor::Approval) => "The agent needs an approval.",
        Some(WaitingFor::Resume) => "The task is paused: a message resumes it.",
        Some(WaitingFor::ToolResult) => "The task waits for the result of a client's tool.",
        Some(WaitingFor::Budget) => "The spend limit is reached: the task goes on when it resets.",
        Some(WaitingFor::Model | WaitingFor::Peer | WaitingFor::Storage) | None => {
            "The task waits for a person."
        }
    }
}

/// The status of a task that has not started or has ended.
pub(crate) fn ended_status(
    task_id: &TaskId,
    change: &StatusChanged,
    at: DateTime<Utc>,
) -> TaskStatus {
    let detail = change.detail.as_ref();
    let text = |name: &str| detail.and_then(|detail| detail.get(name)).and_then(Value::as_str);
    let state = match change.status {
        OwnStatus::Pending => TaskState::Submitted,
        OwnStatus::Running => TaskState::Working,
        OwnStatus::InputRequired => TaskState::InputRequired,
        OwnStatus::Completed => TaskState::Completed,
        OwnStatus::Failed if text("code") == Some("refused") => TaskState::Rejected,
        OwnStatus::Failed => TaskState::Failed,
        OwnStatus::Canceled => TaskState::Canceled,
    };
    let failed = change.status == OwnStatus::Failed;
    let message = text("error").filter(|_| failed).map(|error| {
        let code = text("code").unwrap_or("failed");
        agent_message(task_id, u64::MAX, vec![Part::text(format!("{code}: {error}"))])
    });
    status(state, message, at)
}

pub(crate) fn status(state: TaskState, message: Option<Message>, at: DateTime<Utc>) -> TaskStatus {
    TaskStatus { state, message, timestamp: Some(at) }
}

/// A message of the agent. The same event gives the same id.
pub(crate) fn agent_message(task_id: &TaskId, seq: u64, parts: Vec<Part>) -> Message {
    message(task_id, seq, Role::Agent, parts)
}

fn message(task_id: &TaskId, seq: u64, role: Role, parts: Vec<Part>) -> Message {
    let id = if seq == u64::MAX { format!("{task_id}.end") } else { format!("{task_id}.{seq}") };
    Message {
        message_id: id,
        context_id: None,
        task_id: Some(task_id.to_string()),
        role,
        parts,
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    }
}

/// The newest messages of a task, the oldest of them first.
async fn history(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    wanted: usize,
) -> Result<Vec<Message>, A2aError> {
    let mut newest = VecDeque::new();
    let mut after = Position(0);
    loop {
        let read = Read { task_id: Some(task_id.clone()), after, limit: PAGE };
        let events = orchestrator.read(read).await?.events;
        let Some(last) = events.last() else { return Ok(newest.into()) };
        after = last.position;
        for message in events.iter().filter_map(|event| history_message(task_id, event)) {
            if newest.len() == wanted {
                newest.pop_front();
            }
            newest.push_back(message);
        }
    }
}

fn history_message(task_id: &TaskId, event: &Event) -> Option<Message> {
    let EventBody::MessageAppended(appended) = &event.body else { return None };
    if appended.superseded {
        return None;
    }
    match &*appended.message {
        OwnMessage::User(user) => {
            let part = |block: &InputBlock| match block {
                InputBlock::Text(text) => Part::text(text.text.clone()),
                InputBlock::Image(image) => Part {
                    media_type: Some(image.mime_type().to_owned()),
                    ..Part::raw(image.data().to_vec())
                },
            };
            let parts: Vec<Part> = user.content.iter().map(part).collect();
            (!parts.is_empty()).then(|| message(task_id, event.seq.0, Role::User, parts))
        }
        OwnMessage::Assistant(answer) => {
            let text = answer.text();
            let parts = vec![Part::text(text.clone())];
            (!text.is_empty()).then(|| agent_message(task_id, event.seq.0, parts))
        }
        OwnMessage::ToolResult(_) => None,
    }
}
