//! A task, as its events tell it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use antiphon_core::port::Rule;
use antiphon_core::{
    AgentId, AgentState, ApprovalId, AssistantMessage, Awaited, Compacted, Decision, Dispatched,
    Effect, Event, EventBody, HandedOver, InteractionId, Join, Message, MessageAppended,
    MessageQueued, Position, Replied, RequestSent, Seq, StopReason, TaskCreated, TaskId,
    TaskStatus, ToolCallId, Usage, UserMessage, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::flight::{self, PendingCall};
use crate::owed::{InboundRequest, OutboundRequest};

/// A task, as its events tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Which.
    pub task_id: TaskId,
    /// How it began, with whoever has taken over since.
    pub created: TaskCreated,
    /// When.
    pub created_at: DateTime<Utc>,
    /// Its last event.
    pub seq: Seq,
    /// Where that is in the journal, as far as it was read from there.
    pub position: Position,
    /// How far it got.
    pub status: TaskStatus,
    /// What it waits for.
    pub waiting_for: Option<WaitingFor>,
    /// Its result, or the reason why there is none.
    pub detail: Option<Value>,
    /// Where its agent stands in the lap.
    pub agent_state: AgentState,
    /// The live agent that works on it, once one does.
    pub agent_id: Option<AgentId>,
    /// What was said.
    pub conversation: Conversation,
    /// What arrived and waits for its turn, in order.
    pub queue: Vec<MessageQueued>,
    /// Questions about calls that have no result yet.
    pub asked: HashMap<ToolCallId, Question>,
    /// What somebody allowed for this task.
    pub granted: Vec<Rule>,
    /// What it has taken, by model.
    pub spent: BTreeMap<String, Usage>,
    /// Whole answers of the model.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Results that were not what was asked for.
    pub rejected: u32,
    /// Calls that were started and have no result, and what they do to the world.
    pub started: HashMap<ToolCallId, Effect>,
    /// Calls that wait for somebody else, and have no result.
    pub flights: HashMap<ToolCallId, PendingCall>,
    /// Tasks that were dispatched detached and have not reported, by what their report is called.
    pub detached: BTreeMap<InteractionId, TaskId>,
    /// Whether it ever dispatched anybody.
    pub has_children: bool,
    /// How often another agent took over.
    pub handovers: u32,
    /// Requests to peers that have no final answer yet.
    pub requests: BTreeMap<InteractionId, OutboundRequest>,
    /// Requests of others that it took and has not answered for good.
    pub owed: BTreeMap<InteractionId, InboundRequest>,
    /// The request that its turn is about, as long as it has not answered it.
    pub subject: Option<InteractionId>,
    /// What it had used up when it was last woken.
    pub woken: Woken,
    /// How often agents had written to each other before they woke it.
    pub hops: u32,
}

/// What a standing agent had used up when it was last woken: its limits count from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Woken {
    /// Whole answers of the model.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
}

/// A question to a person, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which.
    pub approval_id: ApprovalId,
    /// What would be allowed beyond the call.
    pub rule: Rule,
    /// The answer, and what was said to it.
    pub answer: Option<(Decision, Option<String>)>,
}

/// The events of a task that make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// There is no such task.
    #[error("there is no task {task_id}")]
    NoTask {
        /// Which.
        task_id: TaskId,
    },
    /// An event cannot follow the one before it.
    #[error("the journal of task {task_id} makes no sense at {seq}")]
    OutOfOrder {
        /// Which.
        task_id: TaskId,
        /// Where.
        seq: Seq,
    },
    /// It goes on with a conversation that goes on with a conversation, and so on.
    #[error("the history of task {task_id} goes through too many tasks")]
    TooDeep {
        /// Which.
        task_id: TaskId,
    },
}

impl TaskState {
    /// A task from its events, in order, behind what was said before it.
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

    /// Adds an event that was read. Says whether it can follow.
    pub(crate) fn follow(&mut self, event: &Event) -> bool {
        if event.seq.0 != self.seq.0 + 1 || !self.apply(&event.body) {
            return false;
        }
        self.position = event.position;
        true
    }

    /// A task that has just been created, behind what was said before it.
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
            agent_state: AgentState::Idle,
            agent_id: None,
            conversation: before.inherited(),
            queue: Vec::new(),
            asked: HashMap::new(),
            granted: Vec::new(),
            spent: BTreeMap::new(),
            turns: 0,
            calls: 0,
            rejected: 0,
            started: HashMap::new(),
            flights: HashMap::new(),
            detached: BTreeMap::new(),
            has_children: false,
            handovers: 0,
            requests: BTreeMap::new(),
            owed: BTreeMap::new(),
            subject: None,
            woken: Woken::default(),
            hops: 0,
        }
    }

    /// Adds what happened next. Says whether that can follow.
    pub fn apply(&mut self, body: &EventBody) -> bool {
        self.seq.0 += 1;
        match body {
            EventBody::TaskCreated(_) => return false,
            EventBody::StatusChanged(change) => {
                if !self.status.may_become(change.status) {
                    return false;
                }
                self.status = change.status;
                self.waiting_for = change.waiting_for;
                self.detail.clone_from(&change.detail);
            }
            EventBody::StateChanged(change) => {
                self.agent_id = Some(change.agent_id);
                self.agent_state = change.to;
            }
            EventBody::MessageAppended(appended) => self.hear(appended),
            EventBody::MessageQueued(queued) => self.queue(queued),
            EventBody::RequestSent(sent) => self.send_request(sent),
            EventBody::Replied(replied) => self.reply(replied),
            EventBody::ApprovalRequested(request) => {
                let question = Question {
                    approval_id: request.approval_id.clone(),
                    rule: request.rule.clone(),
                    answer: None,
                };
                self.asked.insert(request.tool_call_id.clone(), question);
            }
            EventBody::ApprovalDecided(decided) => {
                let mut asked = self.asked.values_mut();
                // The first answer counts.
                let open =
                    |q: &&mut Question| q.approval_id == decided.approval_id && q.answer.is_none();
                if let Some(question) = asked.find(open) {
                    question.answer = Some((decided.decision, decided.comment.clone()));
                    if decided.decision.grants_rule() {
                        self.granted.push(question.rule.clone());
                    }
                }
            }
            EventBody::ToolStarted(started) => {
                self.started.insert(started.tool_call_id.clone(), started.effect);
                self.calls += 1;
            }
            EventBody::UsageRecorded(recorded) => {
                *self.spent.entry(recorded.model.clone()).or_default() += recorded.usage;
                self.turns += u32::from(recorded.purpose.is_none());
            }
            EventBody::OutputRejected(_) => self.rejected += 1,
            EventBody::ToolRequested(requested) => {
                self.calls += 1;
                self.fly(&requested.tool_call_id, PendingCall::External { until: requested.until });
            }
            EventBody::Dispatched(dispatched) => self.dispatch(dispatched),
            EventBody::Awaited(awaited) => {
                let Awaited { tool_call_id, tasks, mode, until } = awaited.clone();
                self.fly(&tool_call_id, PendingCall::Await { tasks, mode, until });
            }
            EventBody::HandedOver(over) => self.hand_over(over),
            EventBody::ToolRefused(_) | EventBody::Relayed(_) | EventBody::BudgetRaised(_) => {}
            EventBody::Compacted(Compacted { summary, kept_from }) => {
                self.conversation.compact(summary, *kept_from);
            }
        }
        true
    }

    fn queue(&mut self, queued: &MessageQueued) {
        self.detached.remove(&queued.id);
        let mut queued = queued.clone();
        if let Some(request) = queued.final_answer_to()
            && let Some(sent) = self.requests.remove(&request)
        {
            queued.hops = sent.hops.saturating_add(1);
        }
        self.queue.retain(|waiting| Some(waiting.id) != queued.replaces);
        self.queue.push(queued);
    }

    fn send_request(&mut self, sent: &RequestSent) {
        let RequestSent { tool_call_id, id, to, intent, params, until, waits } = sent.clone();
        self.requests.insert(id, OutboundRequest { to, intent, params, until, hops: self.hops });
        if waits {
            self.fly(&tool_call_id, PendingCall::Request { id, until });
        }
    }

    fn reply(&mut self, replied: &Replied) {
        let request = &replied.in_reply_to;
        // Also when it only says that it will answer: then its last word is about something else.
        self.subject.take_if(|subject| subject == request);
        if replied.status.is_final() {
            self.queue.retain(|queued| queued.id != *request);
            self.owed.remove(request);
        } else if let Some(owed) = self.owed.get_mut(request) {
            owed.accepted = true;
        }
    }

    fn fly(&mut self, tool_call_id: &ToolCallId, flight: PendingCall) {
        self.flights.insert(tool_call_id.clone(), flight);
    }

    fn dispatch(&mut self, dispatched: &Dispatched) {
        self.has_children = true;
        let Dispatched { tool_call_id, join, children, .. } = dispatched.clone();
        if join == Join::Detached {
            let named = children.iter().map(|child| (flight::report_id(child), child.clone()));
            self.detached.extend(named);
        }
        self.fly(&tool_call_id, PendingCall::Children { join, children });
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

    /// What waited joins the conversation.
    fn take(&mut self, id: InteractionId, message: &Message) {
        let last = self.conversation.own().last().map(|message| &**message);
        let goes_on = matches!(last, Some(Message::User(_) | Message::ToolResult(_)));
        if matches!(message, Message::User(_)) && !goes_on {
            self.woken = Woken { turns: self.turns, calls: self.calls };
            self.hops = 0;
            self.subject = None;
        }
        let Some(place) = self.queue.iter().position(|queued| queued.id == id) else { return };
        let queued = self.queue.remove(place);
        self.hops = self.hops.max(queued.hops);
        if queued.expects_answer() {
            if queued.wakes() {
                self.subject.get_or_insert(id);
            }
            let MessageQueued { from, reply_to, until, .. } = queued;
            self.owed.insert(id, InboundRequest { from, reply_to, until, accepted: false });
        }
    }

    fn hear(&mut self, appended: &MessageAppended) {
        if let Some(id) = appended.queued {
            self.take(id, &appended.message);
        }
        // Some models use an id again in a later answer: that is another call.
        if let Message::ToolResult(result) = &*appended.message {
            self.started.remove(&result.tool_call_id);
            self.asked.remove(&result.tool_call_id);
            self.flights.remove(&result.tool_call_id);
        }
        self.conversation.push(Arc::clone(&appended.message));
    }

    /// What was said, in order, from before this task on.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.conversation.messages()
    }

    /// The last whole answer in this task, and what came behind it.
    pub(crate) fn last_lap(&self) -> Option<(&AssistantMessage, &[Arc<Message>])> {
        let said = self.conversation.own();
        said.iter().enumerate().rev().find_map(|(index, message)| match &**message {
            Message::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) =>
            {
                Some((answer, &said[index + 1..]))
            }
            Message::Assistant(_) | Message::User(_) | Message::ToolResult(_) => None,
        })
    }

    /// The last thing somebody asked.
    pub(crate) fn last_request(&self) -> Option<(usize, &UserMessage)> {
        let messages = self.messages().iter().enumerate();
        messages.rev().find_map(|(index, message)| match &**message {
            Message::User(user) => Some((index, user)),
            Message::Assistant(_) | Message::ToolResult(_) => None,
        })
    }

    /// What it has taken in all.
    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        total
    }
}
