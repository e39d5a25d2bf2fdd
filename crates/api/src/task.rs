//! Tasks: created, read, listed, waited for.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use antiphon_core::{
    CanonicalHeader, Message, ModelRef, Plan, RawJson, SessionId, TaskAccess, TaskId, TaskLimits,
    TaskSummary, TodoItem, Tool, UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Messages in [`CreateTask::history`], at most.
pub const HISTORY_MESSAGES_MAX: usize = 10_000;

/// Names in [`CreateTask::tools`] or [`CreateTask::agents`], at most.
pub const NAMES_MAX: usize = 1024;

/// Entries of one list, at most.
pub const LISTED_MAX: usize = 1000;

/// Longest wait of one request, in seconds. It is shorter than the time limit of a response.
pub const REST_WAIT_S_MAX: u32 = 30;

/// A task to create. The agent's definition supplies the value of an absent field, then the server's
/// configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "NewTask", example = serde_json::json!({ "message": "What is in this folder?" }))
)]
pub struct CreateTask {
    /// Name of the agent that works on the task; the server's default agent when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Model that answers, as `PROVIDER/MODEL`; the agent's model when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The prompt: a text, or a user message with text and images.
    #[cfg_attr(feature = "schema", schemars(with = "antiphon_core::schema::MessageOrText"))]
    pub message: Box<RawValue>,
    /// Messages before the prompt, oldest first. Not together with `session_id`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = HISTORY_MESSAGES_MAX)))]
    pub history: Vec<Arc<Message>>,
    /// System prompt that replaces the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Names of the tools the task may use, at most those of its agent; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Names of the agents the task may call, at most those its agent may call; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Tools that the client runs: the task waits for their results at `POST …/tool_results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_tools: Vec<Arc<Tool>>,
    /// Limits of the task; the agent's limits where absent.
    #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
    pub limits: TaskLimits,
    /// JSON Schema that the result has to match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// The task only reads until a person has accepted its plan; then it goes on with its permissions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan: bool,
    /// Session that the task continues, in place of `history`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The client follows the task and may cancel it while the server is down: after a restart of the server the task goes
    /// on when the client asks for its events with `owner=true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub followed: bool,
}

impl CreateTask {
    /// A task with this text as its prompt and every other field absent.
    pub fn text(text: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::with_message(to_raw_value(text)?))
    }

    /// A task with this message as its prompt and every other field absent.
    pub fn message(message: &UserMessage) -> Result<Self, serde_json::Error> {
        Ok(Self::with_message(to_raw_value(message)?))
    }

    fn with_message(message: Box<RawValue>) -> Self {
        Self {
            agent: None,
            model: None,
            message,
            history: Vec::new(),
            system_prompt: None,
            tools: None,
            agents: None,
            external_tools: Vec::new(),
            limits: TaskLimits::default(),
            output_schema: None,
            plan: false,
            session_id: None,
            followed: false,
        }
    }
}

/// A task that is durable in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Accepted"))]
pub struct TaskAccepted {
    /// Id of the task.
    pub task_id: TaskId,
}

/// Filters and paging of a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TasksQuery"))]
pub struct TaskQuery {
    /// Number of tasks, at most; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
    /// Only tasks with one of these statuses, separated by commas. Not together with `unfinished`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only tasks that have not ended.
    #[serde(default)]
    pub unfinished: bool,
    /// Only tasks of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only tasks of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only tasks without a parent.
    #[serde(default)]
    pub tops: bool,
    /// Also the records of commands, such as raised budgets, which the journal stores as tasks.
    #[serde(default)]
    pub all: bool,
    /// `next_cursor` of the previous page; the first page when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<TaskId>,
    /// Only tasks whose id begins with this text, of every kind. Not together with another field but `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<String>,
}

/// One page of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskPage {
    /// Tasks, newest first.
    pub tasks: Vec<TaskSummary>,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<TaskId>,
}

/// A task and all of its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Tasks"))]
pub struct TaskTree {
    /// Tasks, oldest first: a parent precedes its children.
    pub tasks: Vec<TaskSummary>,
}

/// One task with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Task"))]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub summary: TaskSummary,
    /// Result of a `completed` task; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why a task `failed` or was `canceled`, which spend limit it waits for, or why it waits for its
    /// model: `code`, `error`, `attempt`, `next_at`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Value>,
    /// The canonical messages that a chat completion gave the task, in their order and without content;
    /// absent when there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canonical: Vec<CanonicalHeader>,
    /// What the task may do now within its permissions; absent: what they allow.
    #[serde(default, skip_serializing_if = "TaskAccess::is_permitted")]
    pub access: TaskAccess,
    /// Latest plan of the task; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The list of things to do that the agent keeps; absent when it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
}

/// How long the server waits before it responds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitQuery"))]
pub struct TaskWaitQuery {
    /// Longest wait, in seconds; 30 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = REST_WAIT_S_MAX)))]
    pub wait_s: Option<NonZeroU32>,
}

/// A task, and whether it still works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskRest {
    /// `true` when the task has ended or is suspended until a user or a client acts; `false` when it
    /// still works at the end of the wait.
    pub rests: bool,
    /// The task.
    #[serde(flatten)]
    pub summary: TaskSummary,
}
