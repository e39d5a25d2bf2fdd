//! State of a task, folded from its events.
//!
//! | file           | subject                                       |
//! |----------------|-----------------------------------------------|
//! | `checkpoint`   | the state of a long task, kept beside the log |
//! | `conversation` | the messages, and which the model still reads |
//! | `conversation_cache` | conversations of tasks that have ended  |
//! | `reader`       | rebuilds tasks from the journal               |
//! | `state_cache`  | states kept in memory between runs            |

pub(crate) mod checkpoint;
pub(crate) mod conversation;
pub(crate) mod conversation_cache;
pub(crate) mod reader;
pub(crate) mod state_cache;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use antiphon_core::port::{BootTime, Rule};
use antiphon_core::{
    AgentId, AgentState, ApprovalId, AssistantMessage, Awaited, Compacted, Decision, Dispatched,
    Effect, Event, EventBody, HandedOver, InteractionId, Join, Message, MessageAppended,
    MessageQueued, Position, Provenance, Relayed, Replied, RequestSent, Sender, Seq, StatusChanged,
    TaskCreated, TaskId, TaskStatus, ToolCallId, ToolStarted, Usage, UserMessage, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dispatch::pending_call::PendingCall;
use crate::inbox::derived_id;
use crate::inbox::input_permission;
use crate::inbox::open_requests::{InboundRequest, OutboundRequest};
use crate::task::outage::Outage;
use crate::task::state::conversation::Conversation;

/// Number of deadlines at which those of what is no longer open are dropped.
const DEADLINES_MAX: usize = 256;

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
    /// Decision and comment, once the approval is answered.
    pub answer: Option<(Decision, Option<String>)>,
}

/// Why a task cannot be rebuilt from the journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The journal has no such task.
    #[error("there is no task {task_id}")]
    NoTask {
        /// Id that was looked up.
        task_id: TaskId,
    },
    /// An event cannot follow the one before it.
    #[error("the journal of task {task_id} is inconsistent at event {seq}")]
    OutOfOrder {
        /// Id of the task.
        task_id: TaskId,
        /// Sequence number of the event.
        seq: Seq,
    },
}

impl TaskState {
    /// Rebuilds a task from its events, in order; `before` is the conversation it continues.
    pub fn replay(
        task_id: &TaskId,
        before: Conversation,
        events: &[Event],
    ) -> Result<Self, ReplayError> {
        let out_of_order = |seq| ReplayError::OutOfOrder { task_id: task_id.clone(), seq };
        let (first, rest) =
            events.split_first().ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?;
        let EventBody::TaskCreated(created) = &first.body else {
            return Err(out_of_order(first.seq));
        };
        let mut state = Self::created(task_id.clone(), created.clone(), first.at, before);
        for event in rest {
            if !state.follow(event) {
                return Err(out_of_order(event.seq));
            }
        }
        state.position = state.position.max(first.position);
        Ok(state)
    }

    /// Applies an event that was read. Returns false when it cannot follow.
    pub(crate) fn follow(&mut self, event: &Event) -> bool {
        if event.seq.0 != self.seq.0 + 1 || !self.apply(&event.body) {
            return false;
        }
        self.position = event.position;
        true
    }

    /// State of a task that was just created; `before` is the conversation it continues.
    pub fn created(
        task_id: TaskId,
        created: TaskCreated,
        created_at: DateTime<Utc>,
        before: Conversation,
    ) -> Self {
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
        }
    }

    /// Drops what another user may have put into the file that the task came from. Who sent a message in it is
    /// unknown. A request that it says to have sent is not sent; a call that waits for one is called again.
    fn distrust(&mut self) {
        self.created.runner = None;
        self.created.route = None;
        self.created.cancels = None;
        self.created.provenance = Provenance::Unknown;
        for queued in &mut self.queue {
            queued.provenance = Provenance::Unknown;
        }
        self.outbound_requests.clear();
        self.pending_calls.retain(|_, call| match call {
            PendingCall::Request { .. } => false,
            PendingCall::Children { .. }
            | PendingCall::Await { .. }
            | PendingCall::External { .. } => true,
        });
        self.approvals.clear();
        self.granted.clear();
    }

    /// Applies the next event. Returns false when it cannot follow.
    pub fn apply(&mut self, body: &EventBody) -> bool {
        self.seq.0 += 1;
        match body {
            EventBody::TaskCreated(_) => return false,
            EventBody::TaskRestored(_) => self.distrust(),
            EventBody::StatusChanged(change) => {
                if !self.status.may_become(change.status) {
                    return false;
                }
                self.change_status(change);
            }
            EventBody::StateChanged(change) => {
                self.agent_id = Some(change.agent_id);
                self.agent_state = change.to;
            }
            EventBody::MessageAppended(appended) => self.add_message(appended),
            EventBody::MessageQueued(queued) => self.add_to_queue(queued),
            EventBody::RequestSent(sent) => self.send_request(sent),
            EventBody::Replied(replied) => self.reply(replied),
            EventBody::ApprovalRequested(request) => {
                self.add_deadline(request.expires_at, request.boot_until);
                let question = ApprovalQuestion {
                    approval_id: request.approval_id.clone(),
                    rule: request.rule.clone(),
                    answer: None,
                };
                self.approvals.insert(request.tool_call_id.clone(), question);
            }
            EventBody::ApprovalDecided(decided) => {
                let mut asked = self.approvals.values_mut();
                // The first answer counts.
                let open = |q: &&mut ApprovalQuestion| {
                    q.approval_id == decided.approval_id && q.answer.is_none()
                };
                if let Some(question) = asked.find(open) {
                    question.answer = Some((decided.decision, decided.comment.clone()));
                    if decided.decision.grants_rule() {
                        self.granted.push(question.rule.clone());
                    }
                }
            }
            EventBody::ToolStarted(started) => {
                self.started.insert(started.tool_call_id.clone(), started.into());
                self.calls += 1;
            }
            EventBody::UsageRecorded(recorded) => {
                *self.spent.entry(recorded.model.clone()).or_default() += recorded.usage;
                self.turns += u32::from(recorded.purpose.is_none());
            }
            EventBody::OutputRejected(_) => self.rejected += 1,
            EventBody::ToolRequested(requested) => {
                self.add_deadline(Some(requested.until), requested.boot_until);
                self.calls += 1;
                self.add_pending_call(
                    &requested.tool_call_id,
                    PendingCall::External { until: requested.until },
                );
            }
            EventBody::Dispatched(dispatched) => self.dispatch(dispatched),
            EventBody::Awaited(awaited) => self.wait_for_tasks(awaited),
            EventBody::HandedOver(over) => self.hand_over(over),
            EventBody::Relayed(relayed) => self.relay(relayed),
            EventBody::ToolRefused(_) | EventBody::BudgetRaised(_) => {}
            EventBody::Compacted(Compacted { summary, kept_from }) => {
                self.conversation.compact(summary, *kept_from);
                self.outage.end();
            }
        }
        true
    }

    fn change_status(&mut self, change: &StatusChanged) {
        let waited = self.waiting_for == Some(WaitingFor::Peer);
        if waited && change.waiting_for != Some(WaitingFor::Peer) {
            self.outage.end();
        }
        self.status = change.status;
        self.waiting_for = change.waiting_for;
        self.detail.clone_from(&change.detail);
        self.outage.apply(change);
    }

    /// The peer answers: the next attempt is due at once, and pauses begin anew.
    fn relay(&mut self, relayed: &Relayed) {
        self.relayed = Some(relayed.mark());
        self.outage.end();
        if self.waiting_for == Some(WaitingFor::Peer) {
            self.outage.hurry();
        }
    }

    fn add_to_queue(&mut self, queued: &MessageQueued) {
        self.add_deadline(queued.until, queued.boot_until);
        if queued.from == Sender::User {
            self.outage.hurry();
        }
        self.detached.remove(&queued.id);
        let mut queued = queued.clone();
        if let Some(request) = queued.final_answer_to()
            && let Some(sent) = self.outbound_requests.remove(&request)
        {
            queued.hops = sent.hops.saturating_add(1);
        }
        self.queue.retain(|waiting| Some(waiting.id) != queued.replaces);
        self.queue.push(queued);
    }

    /// Keeps a deadline. Of very many, those of what is no longer open are dropped.
    fn add_deadline(&mut self, until: Option<DateTime<Utc>>, boot_until: Option<BootTime>) {
        let (Some(until), Some(boot_until)) = (until, boot_until) else { return };
        if self.boot_deadlines.len() >= DEADLINES_MAX {
            let replies = self.reply_deadlines().map(|(until, _)| until);
            let sent = self.outbound_requests.values().map(|sent| sent.until);
            let calls = self.pending_calls.values().filter_map(PendingCall::until);
            let open: HashSet<DateTime<Utc>> = replies.chain(sent).chain(calls).collect();
            self.boot_deadlines.retain(|until, _| open.contains(until));
        }
        self.boot_deadlines.insert(until, boot_until);
    }

    fn send_request(&mut self, sent: &RequestSent) {
        let RequestSent { tool_call_id, id, to, intent, params, until, boot_until, waits } =
            sent.clone();
        self.add_deadline(Some(until), boot_until);
        self.outbound_requests
            .insert(id, OutboundRequest { to, intent, params, until, hops: self.hops });
        if waits {
            self.add_pending_call(&tool_call_id, PendingCall::Request { id, until });
        }
    }

    fn reply(&mut self, replied: &Replied) {
        let request = &replied.in_reply_to;
        self.forget_question(*request);
        // Also for `accepted`: the final answer of the turn is then about something else.
        self.current_request.take_if(|subject| subject == request);
        if replied.status.is_final() {
            self.queue.retain(|queued| queued.id != *request);
            self.inbound_requests.remove(request);
        } else if let Some(owed) = self.inbound_requests.get_mut(request) {
            owed.accepted = true;
        }
    }

    fn wait_for_tasks(&mut self, awaited: &Awaited) {
        let Awaited { tool_call_id, tasks, mode, until, boot_until } = awaited.clone();
        self.add_deadline(until, boot_until);
        self.add_pending_call(&tool_call_id, PendingCall::Await { tasks, mode, until });
    }

    fn add_pending_call(&mut self, tool_call_id: &ToolCallId, pending_call: PendingCall) {
        self.pending_calls.insert(tool_call_id.clone(), pending_call);
    }

    fn dispatch(&mut self, dispatched: &Dispatched) {
        self.has_children = true;
        let Dispatched { tool_call_id, join, children, left_out, .. } = dispatched.clone();
        if join == Join::Detached {
            let named = children.iter().map(|child| (derived_id::of_report(child), child.clone()));
            self.detached.extend(named);
        }
        let pending_call = PendingCall::Children { join, children, left_out };
        self.add_pending_call(&tool_call_id, pending_call);
    }

    fn hand_over(&mut self, over: &HandedOver) {
        self.handovers += 1;
        let created = &mut self.created;
        created.agent.clone_from(&over.agent);
        created.model.clone_from(&over.model);
        created.fallbacks.clone_from(&over.fallbacks);
        created.system_prompt.clone_from(&over.system_prompt);
        created.tools.clone_from(&over.tools);
        created.agents.clone_from(&over.agents);
    }

    /// Whether the model has not answered the last message of the task.
    pub(crate) fn is_in_turn(&self) -> bool {
        let last = self.conversation.own().last().map(|message| &**message);
        matches!(last, Some(Message::User(_) | Message::ToolResult(_)))
    }

    /// A queued message joins the conversation.
    fn take(&mut self, id: InteractionId, message: &Message) {
        if matches!(message, Message::User(_)) && !self.is_in_turn() {
            self.at_wake = WakeCounters { turns: self.turns, calls: self.calls };
            self.hops = 0;
            self.current_request = None;
        }
        let Some(place) = self.queue.iter().position(|queued| queued.id == id) else { return };
        let queued = self.queue.remove(place);
        self.hops = self.hops.max(queued.hops);
        if queued.expects_answer() {
            if queued.wakes() {
                self.current_request.get_or_insert(id);
            }
            let MessageQueued { from, reply_to, until, .. } = queued;
            self.inbound_requests
                .insert(id, InboundRequest { from, reply_to, until, accepted: false });
        }
    }

    /// A message that left the inbox is not asked about any more.
    fn forget_question(&mut self, id: InteractionId) {
        self.approvals.remove(&input_permission::question_id(id));
    }

    fn add_message(&mut self, appended: &MessageAppended) {
        if let Some(id) = appended.queued {
            self.forget_question(id);
            self.take(id, &appended.message);
        }
        // Some models use a call id again in a later answer: that is a different call.
        if let Message::ToolResult(result) = &*appended.message {
            self.started.remove(&result.tool_call_id);
            self.approvals.remove(&result.tool_call_id);
            self.pending_calls.remove(&result.tool_call_id);
        }
        if let Message::Assistant(answer) = &*appended.message
            && answer.is_complete()
        {
            self.outage.end();
        }
        self.conversation.push(Arc::clone(&appended.message));
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
