//! The fold of a task: what each event does to its state. It matches every event on purpose.

use std::collections::HashSet;
use std::sync::Arc;

use antiphon_core::port::BootTime;
use antiphon_core::{
    ApprovalDecided, ApprovalRequested, Awaited, Compacted, Dispatched, EventBody, HandedOver,
    InteractionId, Join, Message, MessageAppended, MessageQueued, Plan, PlanQuestion, PlanStatus,
    Provenance, Question, Relayed, Replied, RequestSent, Sender, StatusChanged, TaskAccess,
    ToolCallId, WaitingFor,
};
use chrono::{DateTime, Utc};

use crate::dispatch::pending_call::PendingCall;
use crate::inbox::derived_id;
use crate::inbox::input_permission;
use crate::inbox::open_requests::{InboundRequest, OutboundRequest};
use crate::task::state::{ApprovalQuestion, TaskState, WakeCounters};

/// Number of deadlines at which those of what is no longer open are dropped.
const DEADLINES_MAX: usize = 256;

impl TaskState {
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
                self.ask(request);
            }
            EventBody::ApprovalDecided(decided) => self.decide(decided),
            EventBody::TodoChanged(changed) => self.todo.clone_from(&changed.items),
            EventBody::ToolStarted(started) => {
                self.started.insert(started.tool_call_id.clone(), started.into());
                self.calls += 1;
            }
            EventBody::UsageRecorded(recorded) => {
                *self.spent.entry(recorded.summed_under()).or_default() += recorded.usage;
                self.turns += u32::from(recorded.purpose.is_none());
            }
            EventBody::OutputRejected(_) => self.rejected += 1,
            EventBody::ToolRequested(requested) => {
                self.add_deadline(Some(requested.until), requested.boot_until);
                self.calls += 1;
                self.add_pending_call(
                    &requested.tool_call_id,
                    PendingCall::External {
                        tool_name: requested.tool_name.clone(),
                        until: requested.until,
                    },
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
            self.outage.retry_at_once();
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
        self.access = self.created.access;
        self.plan = None;
    }

    fn ask(&mut self, request: &ApprovalRequested) {
        if let Some(Question::Plan(PlanQuestion { plan })) = &request.question {
            let (text, status) = (plan.clone(), PlanStatus::Proposed);
            self.plan = Some(Plan { text, status, comment: None });
        }
        let question = ApprovalQuestion {
            approval_id: request.approval_id.clone(),
            rule: request.rule.clone(),
            question: request.question.clone(),
            answer: None,
            given: None,
        };
        self.approvals.insert(request.tool_call_id.clone(), question);
    }

    fn decide(&mut self, decided: &ApprovalDecided) {
        let mut asked = self.approvals.values_mut();
        // The first answer counts.
        let open =
            |q: &&mut ApprovalQuestion| q.approval_id == decided.approval_id && q.answer.is_none();
        let Some(question) = asked.find(open) else { return };
        question.answer = Some((decided.decision, decided.comment.clone()));
        question.given.clone_from(&decided.answer);
        match &question.question {
            None if decided.decision.grants_rule() => self.granted.push(question.rule.clone()),
            None | Some(Question::Choice(_)) => {}
            Some(Question::Plan(PlanQuestion { plan })) => {
                let accepted = decided.decision.allows();
                let changed = decided.answer.as_ref().and_then(|answer| answer.text.clone());
                let text = changed.filter(|_| accepted).unwrap_or_else(|| plan.clone());
                let status = if accepted { PlanStatus::Accepted } else { PlanStatus::Rejected };
                if accepted && self.access == TaskAccess::PlanFirst {
                    self.access = TaskAccess::Permitted;
                }
                self.plan = Some(Plan { text, status, comment: decided.comment.clone() });
            }
        }
    }

    fn add_to_queue(&mut self, queued: &MessageQueued) {
        self.add_deadline(queued.until, queued.boot_until);
        if queued.from == Sender::User {
            self.outage.retry_at_once();
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
        } else if let Some(request) = self.inbound_requests.get_mut(request) {
            request.accepted = true;
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
}
