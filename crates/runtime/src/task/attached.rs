//! Tasks that end with their client's request: it takes the calls of its tools with it, or it goes
//! away. A client that goes away before it is told the task's id ends the task all the same.

use antiphon_core::port::Appended;
use antiphon_core::{
    AgentState, EventBody, Message, Position, StateChanged, StatusChanged, TaskId, TaskStatus,
    ToolArguments, ToolCallBlock,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::create::begin;
use crate::task::new_task::NewTask;
use crate::task::state::TaskState;
use crate::watch::delta::Delta;
use crate::watch::follower::Follower;

/// Whether a task was concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concluded {
    /// The journal says so.
    Yes,
    /// It has more to do than to wait for its client.
    NotYet,
}

/// A task whose client attends to it: dropped, the task is canceled.
pub struct AttachedTask {
    orchestrator: Orchestrator,
    task_id: Option<TaskId>,
    follower: Option<Follower>,
    deltas: Option<mpsc::Receiver<Delta>>,
}

impl AttachedTask {
    /// Everything that the journal has of the task, as it was and as it goes on; it can be taken once.
    pub fn take_follower(&mut self) -> Option<Follower> {
        self.follower.take()
    }

    /// What is shown of the task as it comes, from its beginning; it can be taken once. A watcher that
    /// is too slow gets what it has not taken yet, and then no more. There is none of a task that was
    /// accepted before: it may have said something already.
    pub fn take_deltas(&mut self) -> Option<mpsc::Receiver<Delta>> {
        self.deltas.take()
    }

    /// Lets the task go on, or be over, without its client.
    pub fn let_go(mut self) {
        self.task_id = None;
    }
}

impl Drop for AttachedTask {
    fn drop(&mut self) {
        if let Some(task_id) = self.task_id.take() {
            self.orchestrator.abandon(task_id);
        }
    }
}

impl Orchestrator {
    /// Accepts a task as [`invoke`](Self::invoke) does, for as long as its client attends to it.
    pub async fn invoke_attached(
        &self,
        task: NewTask,
    ) -> Result<(TaskId, AttachedTask), OrchestratorError> {
        let append = task.accept(&self.inner).await?;
        let orchestrator = self.clone();
        self.inner
            .owned(async move {
                // Before it begins: nothing is missed, and what is written is at hand.
                let follow =
                    |task_id: &TaskId| orchestrator.follow(Some(task_id.clone()), Position(0));
                let mut follower = follow(&append.task_id);
                let deltas = orchestrator.inner.deltas.of(&append.task_id);
                let Appended { task_id, deduplicated, .. } =
                    begin(&orchestrator.inner, append).await?;
                if deduplicated {
                    follower = follow(&task_id);
                }
                let (follower, deltas) = (Some(follower), (!deduplicated).then_some(deltas));
                // Made in here: nobody may be left to take it.
                let id = Some(task_id.clone());
                Ok((task_id, AttachedTask { orchestrator, task_id: id, follower, deltas }))
            })
            .await
    }

    /// Ends a task that waits for nothing but its client's tools: these calls, as
    /// `{"tool_calls":[{"id","name","arguments"}]}`, are its result. They have no results in it; the
    /// client goes on with another task.
    pub async fn conclude(&self, task_id: &TaskId) -> Result<Concluded, OrchestratorError> {
        let concluded = std::sync::Mutex::new(Concluded::NotYet);
        self.amend(task_id, |_, state| {
            let events = conclusion(state);
            let is = if events.is_empty() { Concluded::NotYet } else { Concluded::Yes };
            *concluded.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = is;
            Ok(events)
        })
        .await?;
        Ok(concluded.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Cancels a task whose client went away. Nobody waits for that but the orchestrator, before it
    /// ends.
    fn abandon(&self, task_id: TaskId) {
        // A program that is being torn down has nobody left to do it: recovery finds the task.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let orchestrator = self.clone();
        let abandoning = async move {
            match orchestrator.cancel(&task_id).await {
                Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
                Err(error) => tracing::warn!(task.id = %task_id, %error, "could not cancel"),
            }
        };
        self.inner.tracker.spawn_on(abandoning, &runtime);
    }
}

/// What ends a task that waits for nothing but its client's tools; nothing for any other.
fn conclusion(state: &TaskState) -> Vec<EventBody> {
    let Some((answer, since)) = state.last_lap() else { return Vec::new() };
    let answered = |call: &ToolCallBlock| {
        since.iter().any(|message| match &**message {
            Message::ToolResult(result) => result.tool_call_id == call.id,
            Message::User(_) | Message::Assistant(_) => false,
        })
    };
    let open: Vec<&ToolCallBlock> = answer.tool_calls().filter(|call| !answered(call)).collect();
    let with_client = |call: &&ToolCallBlock| {
        matches!(state.flights.get(&call.id), Some(PendingCall::External { .. }))
    };
    let others = !state.detached.is_empty() || !state.requests.is_empty();
    if open.is_empty() || others || !open.iter().all(with_client) {
        return Vec::new();
    }
    let calls: Vec<Value> = open.into_iter().map(told).collect();
    let mut events = home(state);
    let detail = Some(json!({ "tool_calls": calls }));
    events.push(StatusChanged { detail, ..StatusChanged::new(TaskStatus::Completed) }.into());
    events
}

fn told(call: &ToolCallBlock) -> Value {
    let arguments = match &call.arguments {
        ToolArguments::Object(json) => json.to().unwrap_or(Value::Null),
        ToolArguments::Malformed(text) => Value::String(text.clone()),
    };
    json!({ "id": call.id, "name": call.name, "arguments": arguments })
}

/// The rest of the lap of its agent.
fn home(state: &TaskState) -> Vec<EventBody> {
    let Some(agent_id) = state.agent_id else { return Vec::new() };
    let mut at = state.agent_state;
    let mut moves = Vec::new();
    while at != AgentState::Idle {
        let (from, to) = (at, at.next());
        moves.push(StateChanged { agent_id, from, to }.into());
        at = to;
    }
    moves
}
