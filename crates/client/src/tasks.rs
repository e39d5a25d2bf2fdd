//! Tasks: created, read, commanded, waited for.

use std::num::NonZeroU32;

use antiphon_api::{
    CreateTask, DiffQuery, MessageAccepted, RunStarted, SendMessage, SendToolResult, StartRun,
    TaskAccepted, TaskDetail, TaskDiff, TaskPage, TaskQuery, TaskRest, TaskTree, TaskWaitQuery,
};
use antiphon_core::{TaskId, TaskSummary};

use crate::client::{Client, Query};
use crate::error::ClientError;

/// Seconds that one request of [`Client::wait_for_task`] waits at the server.
pub const TASK_WAIT_S: NonZeroU32 = NonZeroU32::new(25).unwrap();

impl Client {
    /// Creates a task. Once this returns, the journal has it. With the same `key` the answer is the same
    /// task.
    pub async fn create_task(
        &self,
        task: &CreateTask,
        key: Option<&str>,
    ) -> Result<TaskAccepted, ClientError> {
        self.post(&["v1", "tasks"], task, key).await
    }

    /// One task, with its result once it has ended.
    pub async fn task(&self, task_id: &TaskId) -> Result<TaskDetail, ClientError> {
        self.get(&["v1", "tasks", task_id.as_str()], Query::NONE).await
    }

    /// One page of tasks, newest first.
    pub async fn tasks(&self, query: &TaskQuery) -> Result<TaskPage, ClientError> {
        self.get(&["v1", "tasks"], Query::of(query)?).await
    }

    /// A task and its descendants, a parent before its children.
    pub async fn task_tree(&self, task_id: &TaskId) -> Result<TaskTree, ClientError> {
        self.get(&["v1", "tasks", task_id.as_str(), "tree"], Query::NONE).await
    }

    /// Changes of files that a task made.
    pub async fn task_diff(
        &self,
        task_id: &TaskId,
        query: &DiffQuery,
    ) -> Result<TaskDiff, ClientError> {
        self.get(&["v1", "tasks", task_id.as_str(), "diff"], Query::of(query)?).await
    }

    /// Cancels a task and its descendants.
    pub async fn cancel_task(&self, task_id: &TaskId) -> Result<TaskSummary, ClientError> {
        self.command(&["v1", "tasks", task_id.as_str(), "cancel"]).await
    }

    /// Interrupts the turn of a task: its model call and its running tools end, and it waits until it is
    /// resumed.
    pub async fn interrupt_task(&self, task_id: &TaskId) -> Result<TaskSummary, ClientError> {
        self.command(&["v1", "tasks", task_id.as_str(), "interrupt"]).await
    }

    /// Cancels the task that was created with this key. When there is none, a creation with this key that comes later
    /// finds a canceled task.
    pub async fn cancel_task_by_key(&self, key: &str) -> Result<TaskSummary, ClientError> {
        self.keyed_command(&["v1", "tasks", "cancel"], key).await
    }

    /// Suspends a task until it is resumed.
    pub async fn pause_task(&self, task_id: &TaskId) -> Result<TaskSummary, ClientError> {
        self.command(&["v1", "tasks", task_id.as_str(), "pause"]).await
    }

    /// Starts the task of this process at the owner of the project's journal, through its socket. With the same
    /// `key` it is the same task.
    pub async fn start_run(
        &self,
        run: &StartRun,
        key: Option<&str>,
    ) -> Result<RunStarted, ClientError> {
        self.post(&["v1", "runs"], run, key).await
    }

    /// Asks the owner of the project's journal, through its socket, to give the journal to a server.
    pub async fn request_hand_over(&self) -> Result<(), ClientError> {
        self.command(&["v1", "owner", "hand_over"]).await
    }

    /// Asks the owner of the project's journal, through its socket, to carry out requests that are dropped as files.
    pub async fn watch_requests(&self) -> Result<(), ClientError> {
        self.command(&["v1", "owner", "requests"]).await
    }

    /// Resumes a task.
    pub async fn resume_task(&self, task_id: &TaskId) -> Result<TaskSummary, ClientError> {
        self.command(&["v1", "tasks", task_id.as_str(), "resume"]).await
    }

    /// Sends a message to a task. With the same `key` it is the same message.
    pub async fn send_message(
        &self,
        task_id: &TaskId,
        message: &SendMessage,
        key: Option<&str>,
    ) -> Result<MessageAccepted, ClientError> {
        self.post(&["v1", "tasks", task_id.as_str(), "messages"], message, key).await
    }

    /// Sends the result of a tool that this client runs.
    pub async fn send_tool_result(
        &self,
        task_id: &TaskId,
        result: &SendToolResult,
    ) -> Result<TaskSummary, ClientError> {
        self.post(&["v1", "tasks", task_id.as_str(), "tool_results"], result, None).await
    }

    /// Waits at most `wait_s` seconds until a task has ended or is suspended.
    pub async fn task_rest(
        &self,
        task_id: &TaskId,
        wait_s: NonZeroU32,
    ) -> Result<TaskRest, ClientError> {
        let query = Query::of(&TaskWaitQuery { wait_s: Some(wait_s) })?;
        self.get(&["v1", "tasks", task_id.as_str(), "rest"], query).await
    }

    /// Waits until a task has ended or is suspended, however long that takes.
    pub async fn wait_for_task(&self, task_id: &TaskId) -> Result<TaskSummary, ClientError> {
        loop {
            let TaskRest { rests, summary } = self.task_rest(task_id, TASK_WAIT_S).await?;
            if rests {
                return Ok(summary);
            }
        }
    }
}
