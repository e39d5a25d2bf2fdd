//! Tasks as MCP clients see them: structured content of results and of resources, and its text.

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Approval, StatusChanged, TaskId, TaskStatus, TaskSummary};
use antiphon_runtime::Orchestrator;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::Serialize;
use serde_json::{Value, json};

use crate::approval;
use crate::failure::Failure;

/// A task with its result and the approval that it waits for.
#[derive(Debug)]
pub(crate) struct TaskView {
    pub(crate) summary: TaskSummary,
    /// Its last status, unless it runs.
    pub(crate) last: Option<StatusChanged>,
    /// The approval that it or a descendant waits for.
    pub(crate) approval: Option<Approval>,
}

impl TaskView {
    /// A task as it is now.
    pub(crate) async fn read(reader: &Orchestrator, task_id: &TaskId) -> Result<Self, Failure> {
        Self::of(reader, summary(reader, task_id).await?).await
    }

    pub(crate) async fn of(reader: &Orchestrator, summary: TaskSummary) -> Result<Self, Failure> {
        let last = match summary.status {
            TaskStatus::Pending | TaskStatus::Running => None,
            TaskStatus::InputRequired
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Canceled => reader.last_status(&summary.task_id).await?,
        };
        let approval = if summary.status.is_terminal() {
            None
        } else {
            approval::pending(reader, &summary.task_id).await?
        };
        Ok(Self { summary, last, approval })
    }

    /// What the task has come to, for the client's model.
    pub(crate) fn tool_result(&self) -> CallToolResult {
        let text = self.text();
        let mut result = CallToolResult::structured(self.json());
        result.content = vec![ContentBlock::text(text)];
        result.is_error = Some(self.summary.status == TaskStatus::Failed);
        result
    }

    fn text(&self) -> String {
        let TaskSummary { task_id, status, .. } = &self.summary;
        let detail = self.last.as_ref().and_then(|last| last.detail.as_ref());
        match (status, &self.approval) {
            (TaskStatus::Completed, _) => match detail {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            },
            (TaskStatus::Failed, _) => {
                let text = |name: &str| detail.and_then(|detail| detail[name].as_str());
                let code = text("code").unwrap_or("failed");
                format!("{code}: {}", text("error").unwrap_or("the task failed"))
            }
            (TaskStatus::Canceled, _) => "The task was canceled.".to_owned(),
            (
                TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired,
                Some(asked),
            ) => approval::note(task_id, asked),
            (TaskStatus::Pending | TaskStatus::Running, None) => {
                format!("The task {task_id} runs. Call `task_wait` with it for the result.")
            }
            (TaskStatus::InputRequired, None) => {
                let cause = self
                    .summary
                    .waiting_for
                    .as_ref()
                    .map_or_else(|| "a person".to_owned(), |cause| word(cause).replace('_', " "));
                format!(
                    "The task {task_id} waits for {cause}. `task_send` continues a task that was paused or \
                     interrupted."
                )
            }
        }
    }

    /// The task as JSON, in the form of [`output_schema`].
    pub(crate) fn json(&self) -> Value {
        let mut json = summary_json(&self.summary);
        let detail = self.last.as_ref().and_then(|last| last.detail.clone());
        match (self.summary.status, detail) {
            (TaskStatus::Completed, Some(result)) => json["result"] = result,
            (TaskStatus::Failed, Some(detail)) => {
                json["error"] = json!({ "code": detail["code"], "message": detail["error"] });
            }
            (
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::InputRequired
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::Canceled,
                _,
            ) => {}
        }
        if let Some(asked) = &self.approval {
            json["approval"] = json!({
                "id": asked.approval_id, "taskId": asked.task_id, "toolName": asked.tool_name,
                "arguments": asked.arguments, "reason": asked.reason,
            });
        }
        json
    }
}

/// A task in a list.
pub(crate) fn summary_json(task: &TaskSummary) -> Value {
    let mut json = json!({
        "taskId": task.task_id, "sessionId": task.session_id, "agent": task.agent,
        "status": task.status, "title": task.title, "createdAt": task.created_at,
        "lastEventAt": task.last_event_at,
    });
    if let Some(cause) = &task.waiting_for {
        json["waitingFor"] = json!(cause);
    }
    json
}

/// The schema of a task as JSON.
pub(crate) fn output_schema() -> JsonObject {
    let text = json!({ "type": "string" });
    let schema = json!({
        "type": "object",
        "properties": {
            "taskId": text, "sessionId": text, "agent": text, "title": text, "createdAt": text,
            "lastEventAt": text, "waitingFor": text,
            "status": {
                "type": "string",
                "enum": ["pending", "running", "input_required", "completed", "failed", "canceled"],
            },
            "result": { "description": "Of a task that has completed." },
            "error": { "type": "object", "description": "Of a task that has failed: code and message." },
            "approval": { "type": "object", "description": "The call that waits for a person's decision." },
        },
        "required": ["taskId", "sessionId", "agent", "status"],
    });
    object(schema)
}

/// The fields of a JSON object.
pub(crate) fn object(json: Value) -> JsonObject {
    match json {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

/// The summary of a task.
pub(crate) async fn summary(
    reader: &Orchestrator,
    task_id: &TaskId,
) -> Result<TaskSummary, Failure> {
    let which = TaskSelector::One(task_id.clone());
    let query = TaskQuery { which, limit: std::num::NonZeroUsize::MIN };
    reader.tasks(query).await?.into_iter().next().ok_or_else(Failure::no_task)
}

/// The word that a value of an enum has in JSON.
pub(crate) fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
