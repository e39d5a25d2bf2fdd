//! Open requests: those of a task to its peers, and those of others to it.

use antiphon_core::{
    AgentName, InteractionId, MessageQueued, Replied, RequestSent, ResponseStatus, Sender, TaskId,
    ToolCallId,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::state::TaskState;

/// A request of this task to a peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboundRequest {
    /// Name of the peer.
    pub to: AgentName,
    /// What is requested.
    pub intent: String,
    /// Parameters of the request.
    pub params: Value,
    /// When the request counts as failed.
    pub until: DateTime<Utc>,
    /// Number of consecutive messages between agents before it.
    pub hops: u32,
}

/// A request of another sender that this task has to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboundRequest {
    /// Sender of the request.
    pub from: Sender,
    /// Id of the task that waits for the answer; absent when the sender is no task.
    pub reply_to: Option<TaskId>,
    /// Deadline of the answer.
    pub until: Option<DateTime<Utc>>,
    /// Whether this task announced a later answer.
    pub accepted: bool,
}

impl TaskState {
    /// The final answer to an own request, if it is queued.
    pub(crate) fn response_to(&self, request: InteractionId) -> Option<&MessageQueued> {
        self.queue.iter().find(|queued| queued.final_answer_to() == Some(request))
    }

    /// Whether the request is still to be answered by this task.
    pub(crate) fn has_open_request(&self, request: InteractionId) -> bool {
        let queued = |queued: &MessageQueued| queued.id == request && queued.expects_answer();
        self.inbound_requests.contains_key(&request) || self.queue.iter().any(queued)
    }

    /// The open requests, to be recorded in the successor of this task. No call waits for their answers.
    pub(crate) fn sent(&self) -> impl Iterator<Item = RequestSent> {
        let name = ToolCallId::from(uuid::Uuid::nil());
        self.outbound_requests.iter().map(move |(id, sent)| RequestSent {
            tool_call_id: name.clone(),
            id: *id,
            to: sent.to.clone(),
            intent: sent.intent.clone(),
            params: sent.params.clone(),
            until: sent.until,
            boot_until: self.boot_deadlines.get(&sent.until).copied(),
            waits: false,
        })
    }

    /// The reply of this task to a request, if the request is open.
    pub(crate) fn answer(
        &self,
        in_reply_to: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> Option<Replied> {
        let inbound = self.inbound_requests.get(&in_reply_to);
        let inbound = inbound.map(|inbound| (inbound.from.clone(), inbound.reply_to.clone()));
        let waiting = || {
            let queued = self.queue.iter().find(|queued| queued.id == in_reply_to)?;
            Some((queued.from.clone(), queued.reply_to.clone()))
        };
        let (to, reply_to) = inbound.or_else(waiting)?;
        Some(Replied { in_reply_to, to, reply_to, status, result })
    }

    /// The reply to a request that is overdue.
    pub(crate) fn overdue_reply(&self, request: InteractionId) -> Option<Replied> {
        let result = json!({ "code": "timed_out", "error": "no answer in time" });
        self.answer(request, ResponseStatus::Failed, result)
    }

    /// Deadlines of the replies of this task.
    pub(crate) fn reply_deadlines(&self) -> impl Iterator<Item = (DateTime<Utc>, InteractionId)> {
        let inbound =
            self.inbound_requests.iter().filter_map(|(id, inbound)| Some((inbound.until?, *id)));
        let waiting = self.queue.iter().filter(|queued| queued.expects_answer());
        inbound.chain(waiting.filter_map(|queued| Some((queued.until?, queued.id))))
    }

    /// Requests of others that are overdue.
    pub(crate) fn overdue_requests(&self, time: &DeadlineClock) -> Vec<InteractionId> {
        let over = |until: Option<DateTime<Utc>>| until.is_some_and(|until| time.has_passed(until));
        let inbound = self
            .inbound_requests
            .iter()
            .filter(|(_, inbound)| over(inbound.until))
            .map(|(id, _)| *id);
        let waiting =
            self.queue.iter().filter(|queued| queued.expects_answer() && over(queued.until));
        inbound.chain(waiting.map(|queued| queued.id)).collect()
    }

    /// The next deadline of a reply or of an own request.
    pub(crate) fn next_reply_deadline(&self) -> Option<DateTime<Utc>> {
        let awaited = self.reply_deadlines().map(|(until, _)| until);
        awaited.chain(self.outbound_requests.values().map(|sent| sent.until)).min()
    }
}
