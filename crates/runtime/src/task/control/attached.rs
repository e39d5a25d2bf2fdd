//! Tasks that live as long as their client's request. When the client disconnects, also before it
//! learns the task's id, the task is canceled. A task that only waits for its client's tools can
//! end with those calls as its result.

use antiphon_core::{
    AgentState, EventBody, Message, Position, StateChanged, StatusChanged, TaskId, TaskStatus,
    ToolArguments, ToolCallBlock,
};
use serde_json::{Value, json};

use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::control::approval::ApprovalRequests;
use crate::task::control::create::{AcceptedTask, create_and_start};
use crate::task::control::new_task::NewTask;
use crate::task::state::TaskState;
use crate::task::state::reader::Before;
use crate::task::state::state_cache::AfterEnd;
use crate::watch::delta_watchers::DeltaWatcher;
use crate::watch::follower::Follower;

/// Result of [`Orchestrator::conclude`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// The task is completed, durably.
    Completed,
    /// The task does not only wait for its client, and runs on.
    StillRunning,
}

/// What follows a task from its beginning.
#[derive(Default)]
pub struct TaskWatch {
    /// The events of the task, from its first one on.
    pub follower: Option<Follower>,
    /// Live deltas of the task. `None` for a task that existed before: its first deltas are gone.
    pub deltas: Option<DeltaWatcher>,
    /// The approvals that tasks ask for, from before the task began. `None` for a task that existed before.
    pub approvals: Option<ApprovalRequests>,
}

/// A task that is canceled when this value is dropped.
pub struct AttachedTask {
    orchestrator: Orchestrator,
    task_id: Option<TaskId>,
    follower: Option<Follower>,
    deltas: Option<DeltaWatcher>,
    approvals: Option<ApprovalRequests>,
}

impl AttachedTask {
    /// The events of the task, from its first one on. Can be taken once.
    pub fn take_follower(&mut self) -> Option<Follower> {
        self.follower.take()
    }

    /// Live deltas of the task, from its beginning. Can be taken once. `None` for a task that existed before: its first deltas are
    /// gone.
    pub fn take_deltas(&mut self) -> Option<DeltaWatcher> {
        self.deltas.take()
    }

    /// The approvals that tasks ask for, from before the task began. Can be taken once. `None` for a task that existed before.
    pub fn take_approvals(&mut self) -> Option<ApprovalRequests> {
        self.approvals.take()
    }

    /// What follows the task. Can be taken once.
    pub fn take_watch(&mut self) -> TaskWatch {
        let (follower, deltas) = (self.take_follower(), self.take_deltas());
        TaskWatch { follower, deltas, approvals: self.take_approvals() }
    }

    /// Detaches the task: it is not canceled when this value is dropped.
    pub fn detach(mut self) {
        self.task_id = None;
    }
}

impl Drop for AttachedTask {
    fn drop(&mut self) {
        if let Some(task_id) = self.task_id.take() {
            self.orchestrator.cancel_abandoned(task_id);
        }
    }
}

impl Orchestrator {
    /// Accepts a task as [`invoke`](Self::invoke) does, and cancels it when the client disconnects.
    pub async fn invoke_attached(
        &self,
        task: NewTask,
    ) -> Result<(AcceptedTask, AttachedTask), OrchestratorError> {
        self.services.background.check_accepts()?;
        let append = task.into_append(&self.services).await?;
        let orchestrator = self.clone();
        self.services
            .background
            .run_detached(async move {
                // Subscribes before the start, so that no event is missed.
                let follow =
                    |task_id: &TaskId| orchestrator.follow(Some(task_id.clone()), Position(0));
                let mut follower = follow(&append.task_id);
                let deltas = orchestrator.services.deltas.watch_task(&append.task_id);
                let approvals = ApprovalRequests::of(&orchestrator.services);
                let after_end = AfterEnd::DropConversation;
                let accepted: AcceptedTask =
                    create_and_start(&orchestrator.services, append, after_end).await?.into();
                let AcceptedTask { task_id, deduplicated } = accepted.clone();
                if deduplicated {
                    follower = follow(&task_id);
                }
                let (follower, deltas) = (Some(follower), (!deduplicated).then_some(deltas));
                let approvals = (!deduplicated).then_some(approvals);
                // Created in here: when the caller is gone, dropping it cancels the task.
                let task_id = Some(task_id);
                Ok((accepted, AttachedTask { orchestrator, task_id, follower, deltas, approvals }))
            })
            .await
    }

    /// Accepts a task as [`invoke`](Self::invoke) does. It goes on without its client, also when the client disconnects
    /// while the task is created.
    pub async fn invoke_watched(
        &self,
        task: NewTask,
    ) -> Result<(AcceptedTask, TaskWatch), OrchestratorError> {
        let orchestrator = self.clone();
        let created = async move {
            let (accepted, mut attached) = orchestrator.invoke_attached(task).await?;
            let watch = attached.take_watch();
            attached.detach();
            Ok((accepted, watch))
        };
        self.run_detached(created).await?
    }

    /// Completes a task that waits only for calls of its client's tools. The result is
    /// `{"tool_calls":[{"id","name","arguments"}]}`. The calls get no results in this task; the client
    /// continues in another one.
    pub async fn conclude(&self, task_id: &TaskId) -> Result<Conclusion, OrchestratorError> {
        let concluded = std::sync::Mutex::new(Conclusion::StillRunning);
        // The calls are in its last answer.
        self.amend_with(task_id, Before::Recent, |_, state| {
            let events = conclusion(state);
            let is =
                if events.is_empty() { Conclusion::StillRunning } else { Conclusion::Completed };
            *concluded.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = is;
            Ok(events)
        })
        .await?;
        Ok(concluded.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Cancels a task whose client disconnected. `shutdown` waits for it.
    fn cancel_abandoned(&self, task_id: TaskId) {
        // Without a runtime the process is ending: recovery finds the task.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let orchestrator = self.clone();
        let abandoning = async move {
            match orchestrator.cancel(&task_id).await {
                Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
                Err(error) => tracing::warn!(task.id = %task_id, %error, "could not cancel"),
            }
        };
        self.services.background.tracker.spawn_on(abandoning, &runtime);
    }
}

/// The events that complete a task that waits only for its client's tools; none for other tasks.
fn conclusion(state: &TaskState) -> Vec<EventBody> {
    let Some((answer, since)) = state.last_step() else { return Vec::new() };
    let answered = |call: &ToolCallBlock| {
        since.iter().any(|message| match &**message {
            Message::ToolResult(result) => result.tool_call_id == call.id,
            Message::User(_) | Message::Assistant(_) => false,
        })
    };
    let open: Vec<&ToolCallBlock> = answer.tool_calls().filter(|call| !answered(call)).collect();
    let with_client = |call: &&ToolCallBlock| {
        matches!(state.pending_calls.get(&call.id), Some(PendingCall::External { .. }))
    };
    let others = !state.detached.is_empty() || !state.outbound_requests.is_empty();
    if open.is_empty() || others || !open.iter().all(with_client) {
        return Vec::new();
    }
    let calls: Vec<Value> = open.into_iter().map(call_json).collect();
    let mut events: Vec<EventBody> = return_to_idle(state).into_iter().collect();
    let detail = Some(json!({ "tool_calls": calls }));
    events.push(StatusChanged { detail, ..StatusChanged::new(TaskStatus::Completed) }.into());
    events
}

fn call_json(call: &ToolCallBlock) -> Value {
    let arguments = match &call.arguments {
        ToolArguments::Object(json) => json.to().unwrap_or(Value::Null),
        ToolArguments::Malformed(text) => Value::String(text.clone()),
    };
    json!({ "id": call.id, "name": call.name, "arguments": arguments })
}

/// The state change that brings the agent back to idle.
fn return_to_idle(state: &TaskState) -> Option<EventBody> {
    let from = state.agent_state;
    let agent_id = state.agent_id.filter(|_| from != AgentState::Idle)?;
    let mut change = StateChanged::new(agent_id, from, from.next());
    while change.to != AgentState::Idle {
        change.join(&StateChanged::new(agent_id, change.to, change.to.next()));
    }
    Some(change.into())
}
