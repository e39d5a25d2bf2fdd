//! Who waits for whose answer: requests of a task to its peers, and those of others to it.

use antiphon_core::{
    AgentName, InteractionId, MessageQueued, Replied, RequestSent, ResponseStatus, Sender, TaskId,
    ToolCallId,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::state::TaskState;

/// A request to a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundRequest {
    /// Which peer.
    pub to: AgentName,
    /// For what.
    pub intent: String,
    /// With what.
    pub params: Value,
    /// When the answer is no.
    pub until: DateTime<Utc>,
    /// How often agents had written to each other before it.
    pub hops: u32,
}

/// A request that waits for an answer of this task.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundRequest {
    /// Who asked.
    pub from: Sender,
    /// The task that waits.
    pub reply_to: Option<TaskId>,
    /// When an answer comes too late.
    pub until: Option<DateTime<Utc>>,
    /// It said that it will answer later.
    pub accepted: bool,
}

impl TaskState {
    /// The final answer to a request of its own, if it has arrived and nobody has read it.
    pub(crate) fn response_to(&self, request: InteractionId) -> Option<&MessageQueued> {
        self.queue.iter().find(|queued| queued.final_answer_to() == Some(request))
    }

    /// Whether somebody waits for an answer of this task to a request.
    pub(crate) fn waits_for_answer(&self, request: InteractionId) -> bool {
        let queued = |queued: &MessageQueued| queued.id == request && queued.expects_answer();
        self.owed.contains_key(&request) || self.queue.iter().any(queued)
    }

    /// Its open requests, as the next one in its place has them: no call waits for their answers.
    pub(crate) fn sent(&self) -> impl Iterator<Item = RequestSent> {
        let name = ToolCallId::from(uuid::Uuid::nil());
        self.requests.iter().map(move |(id, sent)| RequestSent {
            tool_call_id: name.clone(),
            id: *id,
            to: sent.to.clone(),
            intent: sent.intent.clone(),
            params: sent.params.clone(),
            until: sent.until,
            waits: false,
        })
    }

    /// An answer of this task, if somebody waits for it.
    pub(crate) fn answer(
        &self,
        in_reply_to: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> Option<Replied> {
        let owed = self.owed.get(&in_reply_to);
        let owed = owed.map(|owed| (owed.from.clone(), owed.reply_to.clone()));
        let waiting = || {
            let queued = self.queue.iter().find(|queued| queued.id == in_reply_to)?;
            Some((queued.from.clone(), queued.reply_to.clone()))
        };
        let (to, reply_to) = owed.or_else(waiting)?;
        Some(Replied { in_reply_to, to, reply_to, status, result })
    }

    /// What is said to a request that was not answered in time.
    pub(crate) fn too_late(&self, request: InteractionId) -> Option<Replied> {
        let result = json!({ "code": "timed_out", "error": "nobody answered in time" });
        self.answer(request, ResponseStatus::Failed, result)
    }

    /// When others stop waiting for answers of this task.
    pub(crate) fn awaited_until(&self) -> impl Iterator<Item = (DateTime<Utc>, InteractionId)> {
        let owed = self.owed.iter().filter_map(|(id, owed)| Some((owed.until?, *id)));
        let waiting = self.queue.iter().filter(|queued| queued.expects_answer());
        owed.chain(waiting.filter_map(|queued| Some((queued.until?, queued.id))))
    }

    /// Requests of others that were not answered in time.
    pub(crate) fn late_answers(&self, now: DateTime<Utc>) -> Vec<InteractionId> {
        let over = |until: Option<DateTime<Utc>>| until.is_some_and(|until| now >= until);
        let owed = self.owed.iter().filter(|(_, owed)| over(owed.until)).map(|(id, _)| *id);
        let waiting =
            self.queue.iter().filter(|queued| queued.expects_answer() && over(queued.until));
        owed.chain(waiting.map(|queued| queued.id)).collect()
    }

    /// When it has to be looked at next because of a request that nobody answers.
    pub(crate) fn answers_due(&self) -> Option<DateTime<Utc>> {
        let awaited = self.awaited_until().map(|(until, _)| until);
        awaited.chain(self.requests.values().map(|sent| sent.until)).min()
    }
}
