//! State of a task, folded from its events.
//!
//! | file                 | subject                                       |
//! |----------------------|-----------------------------------------------|
//! | `fold`               | what each event does to the state             |
//! | `replay`             | the state after a list of events              |
//! | `checkpoint`         | the state of a long task, kept beside the log |
//! | `conversation`       | the messages, and which the model still reads |
//! | `conversation_cache` | conversations of tasks that have ended        |
//! | `reader`             | rebuilds tasks from the journal               |
//! | `state_cache`        | states kept in memory between runs            |

pub(crate) mod checkpoint;
pub(crate) mod conversation;
pub(crate) mod conversation_cache;
mod fold;
pub(crate) mod reader;
mod replay;
pub(crate) mod state_cache;

pub use replay::ReplayError;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use antiphon_core::port::{BootTime, Rule};
use antiphon_core::{
    AgentId, AgentState, Answer, ApprovalId, AssistantMessage, Decision, Effect, InteractionId,
    Message, MessageQueued, Plan, Position, Question, Relayed, Seq, TaskAccess, TaskCreated,
    TaskId, TaskStatus, TodoItem, ToolCallId, ToolStarted, Usage, UserMessage, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dispatch::pending_call::PendingCall;
use crate::inbox::open_requests::{InboundRequest, OutboundRequest};
use crate::task::outage::Outage;
use crate::task::state::conversation::Conversation;

/// State of a task, folded from its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskState {
    /// Id of the task.
    pub task_id: TaskId,
    /// The creation event. A handover replaces agent, model, system prompt and tools in it.
    pub created: TaskCreated,
    /// When the task was created.
    pub created_at: DateTime<Utc>,
    /// Sequence number of the last event.
    pub seq: Seq,
    /// Journal position of the last event that was read from the journal.
    pub position: Position,
    /// Current status.
    pub status: TaskStatus,
    /// What the task waits for: a person or a client when its status is `input_required`, its model
    /// or its peer when it is `running`.
    pub waiting_for: Option<WaitingFor>,
    /// The result, or the reason for a failure or a wait.
    pub detail: Option<Value>,
    /// The outage of its model or its peer.
    pub outage: Outage,
    /// State of the agent in its cycle.
    pub agent_state: AgentState,
    /// Id of the live agent, once the task has run.
    pub agent_id: Option<AgentId>,
    /// All messages, with what the model still reads of them.
    #[serde(skip)]
    pub conversation: Conversation,
    /// Messages that are not read yet, in order of arrival.
    pub queue: Vec<MessageQueued>,
    /// Approvals of calls that have no result yet.
    pub approvals: HashMap<ToolCallId, ApprovalQuestion>,
    /// Rules that a user allowed for this task.
    pub granted: Vec<Rule>,
    /// Token usage by model.
    pub spent: BTreeMap<String, Usage>,
    /// Number of complete answers of the model.
    pub turns: u32,
    /// Number of tool calls.
    pub calls: u32,
    /// Number of results that did not fit the output schema.
    pub rejected: u32,
    /// Calls that were started and have no result.
    pub started: HashMap<ToolCallId, StartedCall>,
    /// Calls without a result that wait for tasks, a peer or a client.
    pub pending_calls: HashMap<ToolCallId, PendingCall>,
    /// Detached tasks that have not reported, by the id of their report.
    pub detached: BTreeMap<InteractionId, TaskId>,
    /// Whether it ever dispatched a task.
    pub has_children: bool,
    /// Number of handovers to another agent.
    pub handovers: u32,
    /// Own requests to peers without a final answer.
    pub outbound_requests: BTreeMap<InteractionId, OutboundRequest>,
    /// Requests of others that it read and has not finally answered.
    pub inbound_requests: BTreeMap<InteractionId, InboundRequest>,
    /// The request that the current turn is about, until it is answered.
    pub current_request: Option<InteractionId>,
    /// Counters at the last wake-up.
    pub at_wake: WakeCounters,
    /// Number of consecutive messages between agents that led to the last wake-up.
    pub hops: u32,
    /// Deadlines of approvals, requests and waits by a clock that cannot be set.
    pub boot_deadlines: BTreeMap<DateTime<Utc>, BootTime>,
    /// How far the events of the task at another orchestrator are recorded here, without the tasks below it.
    pub relayed: Option<Relayed>,
    /// What it may do now within its permissions.
    pub access: TaskAccess,
    /// Its latest plan.
    pub plan: Option<Plan>,
    /// The list of things to do that the agent keeps.
    pub todo: Vec<TodoItem>,
}

/// What was recorded at the start of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCall {
    /// Effect of the tool.
    pub effect: Effect,
    /// What the tool needs to find out whether the call happened.
    pub note: Option<Value>,
}

impl From<&ToolStarted> for StartedCall {
    fn from(started: &ToolStarted) -> Self {
        Self { effect: started.effect, note: started.note.clone() }
    }
}

/// Counters of a resident agent at its last wake-up. Its limits count from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WakeCounters {
    /// Number of complete answers of the model.
    pub turns: u32,
    /// Number of tool calls.
    pub calls: u32,
}

/// An approval request for a call, and the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// The rule that a lasting permission would add.
    pub rule: Rule,
    /// What the person is asked. Absent: whether the call may run.
    pub question: Option<Question>,
    /// Decision and comment, once the approval is answered.
    pub answer: Option<(Decision, Option<String>)>,
    /// The answer to the question.
    pub given: Option<Answer>,
}

impl TaskState {
    /// State of a task that was just created; `before` is the conversation it continues.
    pub fn created(
        task_id: TaskId,
        created: TaskCreated,
        created_at: DateTime<Utc>,
        before: Conversation,
    ) -> Self {
        let access = created.access;
        Self {
            task_id,
            created,
            created_at,
            seq: Seq(1),
            position: Position(0),
            status: TaskStatus::Pending,
            waiting_for: None,
            detail: None,
            outage: Outage::default(),
            agent_state: AgentState::Idle,
            agent_id: None,
            conversation: before.inherited(),
            queue: Vec::new(),
            approvals: HashMap::new(),
            granted: Vec::new(),
            spent: BTreeMap::new(),
            turns: 0,
            calls: 0,
            rejected: 0,
            started: HashMap::new(),
            pending_calls: HashMap::new(),
            detached: BTreeMap::new(),
            has_children: false,
            handovers: 0,
            outbound_requests: BTreeMap::new(),
            inbound_requests: BTreeMap::new(),
            current_request: None,
            at_wake: WakeCounters::default(),
            hops: 0,
            boot_deadlines: BTreeMap::new(),
            relayed: None,
            access,
            plan: None,
            todo: Vec::new(),
        }
    }

    /// Whether the model has not answered the last message of the task.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.conversation.is_in_turn()
    }

    /// The messages, including those of the tasks it continues.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.conversation.messages()
    }

    /// The last complete answer in this task, and the messages after it.
    pub(crate) fn last_step(&self) -> Option<(&AssistantMessage, &[Arc<Message>])> {
        let said = self.conversation.own();
        said.iter().enumerate().rev().find_map(|(index, message)| match &**message {
            Message::Assistant(answer) if answer.is_complete() => {
                Some((answer, &said[index + 1..]))
            }
            Message::Assistant(_) | Message::User(_) | Message::ToolResult(_) => None,
        })
    }

    /// The last user message and its index in the conversation.
    pub(crate) fn last_request(&self) -> Option<(usize, &UserMessage)> {
        let messages = self.messages().iter().enumerate();
        messages.rev().find_map(|(index, message)| match &**message {
            Message::User(user) => Some((self.conversation.first() + index, user)),
            Message::Assistant(_) | Message::ToolResult(_) => None,
        })
    }

    /// Total token usage.
    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        total
    }
}
