//! One run of a task: its state with the events that are not written yet, and what every part of a step does to both.

use std::sync::Arc;

use antiphon_core::{
    AgentId, AgentState, EventBody, InteractionId, Message, MessageAppended, StateChanged,
    StatusChanged, TaskStatus, ToolCallBlock, ToolResult, WaitingFor,
};
use uuid::Uuid;

use crate::budget::tree_usage::Tree;
use crate::deps::RuntimeDeps;
use crate::dispatch::pending_call::Outcomes;
use crate::services::Services;
use crate::task::decide::{self, Action};
use crate::task::limits::LimitContext;
use crate::task::schedule::run_slots::RunningTask;
use crate::task::state::TaskState;
use crate::task::step::tools;

/// Why a run returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The task has ended.
    Ended,
    /// It waits for a user or a client.
    Suspended,
    /// It waits for other tasks or messages.
    Waiting,
}

/// One run of a task.
pub(crate) struct TaskRun {
    pub(crate) services: Arc<Services>,
    /// What the task works with.
    pub(crate) deps: Arc<RuntimeDeps>,
    /// State of the task, including events that are not written yet.
    pub(crate) state: TaskState,
    /// Totals of the task and its ancestors, its own first.
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent: the same in every run, until the task is handed over.
    pub(crate) agent_id: AgentId,
    pub(crate) agent_state: AgentState,
    pub(crate) unwritten: Vec<EventBody>,
    /// Index in `unwritten` of the first event of the task's end. The end is decided again when
    /// another writer was first.
    pub(crate) ending_from: Option<usize>,
    /// The state change before the end as it was, when the end has joined its own to it.
    pub(crate) before_end: Option<StateChanged>,
    /// Started calls with a result that may not be written yet.
    pub(crate) unsettled: Vec<UnsettledCall>,
    pub(crate) running: Arc<RunningTask>,
    /// What is known about the task at a peer.
    pub(crate) at_peer: AtPeer,
}

/// What a run knows about its task at a peer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AtPeer {
    /// The peer had its time to receive the cancellation.
    pub(crate) cancel_tried: bool,
    /// The peer has refused to create the task.
    pub(crate) refused: bool,
}

/// A started call with a result. Its tool may keep something until the result is recorded.
pub(crate) struct UnsettledCall {
    pub(crate) tool: String,
    pub(crate) call_uuid: Uuid,
}

impl TaskRun {
    pub(crate) fn push(&mut self, body: impl Into<EventBody>) {
        let body = body.into();
        if let EventBody::StateChanged(change) = &body
            && self.join_state_change(change)
        {
            return;
        }
        self.state.apply(&body);
        self.unwritten.push(body);
    }

    /// Makes one event of state changes in a row: the agent enters the states between them for no time. Returns whether it did.
    fn join_state_change(&mut self, next: &StateChanged) -> bool {
        let begins_end = self.ending_from == Some(self.unwritten.len());
        let Some(EventBody::StateChanged(last)) = self.unwritten.last_mut() else { return false };
        let before = begins_end.then(|| last.clone());
        if !last.join(next) {
            return false;
        }
        self.state.agent_state = next.to;
        self.before_end = self.before_end.take().or(before);
        true
    }

    pub(super) fn run_end(&self) -> RunEnd {
        match self.state.status {
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Canceled => RunEnd::Ended,
            TaskStatus::InputRequired => RunEnd::Suspended,
            TaskStatus::Pending | TaskStatus::Running => RunEnd::Waiting,
        }
    }

    pub(super) fn decide(&self) -> Action {
        let decide = |outcomes: &Outcomes| {
            let context = LimitContext {
                time: &self.services.time,
                scopes: self.trees.iter().map(|tree| tree.scope()).collect(),
                outcomes,
                prices: &self.services.deps.prices,
                window_tokens: self.window_tokens(),
                budget: self.services.budget.model_refusal(&self.state.created),
            };
            decide::next_action(&self.state, &context)
        };
        // Most tasks wait for no other task and skip the lock.
        if self.state.pending_calls.is_empty() && self.state.detached.is_empty() {
            return decide(&Outcomes::new());
        }
        self.services.waiters.outcomes(&self.state.task_id, decide)
    }

    /// Starts a new agent: another definition took over the task.
    pub(crate) fn replace_agent(&mut self) {
        self.agent_id = AgentId::from(self.services.deps.ids.random());
        self.agent_state = AgentState::Idle;
    }

    pub(crate) fn window_tokens(&self) -> Option<u64> {
        let model = self.state.created.model.as_ref()?;
        self.deps.models.window_tokens(model)
    }

    /// Moves the agent along its state cycle up to `to`.
    pub(crate) fn advance_to(&mut self, to: AgentState) {
        while self.agent_state != to {
            let (from, next) = (self.agent_state, self.agent_state.next());
            self.agent_state = next;
            self.push(StateChanged::new(self.agent_id, from, next));
        }
    }

    /// Suspends the task until `waiting_for` happens.
    pub(crate) fn wait_for(&mut self, waiting_for: WaitingFor) {
        let status = StatusChanged::new(TaskStatus::InputRequired);
        self.push(StatusChanged { waiting_for: Some(waiting_for), ..status });
    }

    /// Moves queued messages into the conversation.
    pub(super) fn take_messages(&mut self, ids: &[InteractionId]) {
        let find = |id: &InteractionId| self.state.queue.iter().find(|queued| queued.id == *id);
        let taken: Vec<_> = ids.iter().filter_map(find).cloned().collect();
        for queued in taken {
            let message =
                Arc::new(Message::User(queued.user_message(self.services.deps.clock.now())));
            self.push(MessageAppended::of_queued(message, queued.id));
        }
    }

    pub(crate) fn add_result(&mut self, call: &ToolCallBlock, result: ToolResult) {
        if self.state.started.contains_key(&call.id) {
            let call_uuid = self.call_uuid(call);
            self.unsettled.push(UnsettledCall { tool: call.name.clone(), call_uuid });
        }
        let message = tools::message(call, result, self.services.deps.clock.now());
        self.push(MessageAppended::new(message));
    }
}
