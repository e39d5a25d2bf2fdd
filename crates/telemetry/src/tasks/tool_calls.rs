//! The running tool calls of one task.
//!
//! A call starts with its first event and ends with its result or with its task. Some models reuse
//! an id in a later answer: that is another call.

use std::collections::HashMap;

use antiphon_core::{Event, EventBody, Message, ToolCallId};
use chrono::{DateTime, Utc};

use crate::trace::span::cut;

/// Most running calls that are tracked per task. Above the limit, only results are counted.
pub(crate) const CALLS_OPEN_MAX: usize = 4096;

/// Tools of the orchestrator whose name is not in the journal.
const CALL_AGENT: &str = "call_agent";
const WAIT_TASK: &str = "wait_task";
const SEND_REQUEST: &str = "send_request";

#[derive(Debug, Default)]
pub(crate) struct OpenToolCalls(HashMap<ToolCallId, Call>);

#[derive(Debug)]
struct Call {
    began: DateTime<Utc>,
    seq: u64,
    tool: String,
    refused: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCallEnded {
    pub(crate) id: ToolCallId,
    pub(crate) tool: String,
    pub(crate) outcome: CallOutcome,
    /// Time and sequence number of the first event, if it was seen.
    pub(crate) began: Option<(DateTime<Utc>, u64)>,
    pub(crate) ended: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallOutcome {
    Ok,
    Error,
    Refused,
    /// The task ended first.
    Unfinished,
}

impl CallOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Refused => "refused",
            Self::Unfinished => "unfinished",
        }
    }
}

impl OpenToolCalls {
    /// Records the start of a call. A call that runs again after a crash keeps its first start.
    pub(crate) fn begin(&mut self, event: &Event) {
        let Some((id, tool)) = started(&event.body) else { return };
        let refused = matches!(event.body, EventBody::ToolRefused(_));
        if let Some(call) = self.0.get_mut(id) {
            call.refused |= refused;
        } else if self.0.len() < CALLS_OPEN_MAX {
            let call =
                Call { began: event.at, seq: event.seq.0, tool: cut(tool).to_owned(), refused };
            self.0.insert(id.clone(), call);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sequence number of the event that started a running call.
    pub(crate) fn began(&self, id: &ToolCallId) -> Option<u64> {
        self.0.get(id).map(|call| call.seq)
    }

    /// Handles a new message, which may be the result of a call.
    pub(crate) fn message(
        &mut self,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Option<ToolCallEnded> {
        let Message::ToolResult(result) = message else { return None };
        let call = self.0.remove(&result.tool_call_id);
        let outcome = match (&call, result.is_error) {
            (Some(Call { refused: true, .. }), _) => CallOutcome::Refused,
            (_, true) => CallOutcome::Error,
            (_, false) => CallOutcome::Ok,
        };
        Some(ToolCallEnded {
            id: result.tool_call_id.clone(),
            tool: result.tool_name.clone(),
            outcome,
            began: call.map(|call| (call.began, call.seq)),
            ended: at,
        })
    }

    /// Ends all calls with their task, in the order of their starts.
    pub(crate) fn end(&mut self, at: DateTime<Utc>) -> impl Iterator<Item = ToolCallEnded> + use<> {
        let mut left: Vec<_> = self.0.drain().collect();
        left.sort_by_key(|(_, call)| call.seq);
        left.into_iter().map(move |(id, call)| {
            let Call { began, seq, tool, refused } = call;
            let outcome = if refused { CallOutcome::Refused } else { CallOutcome::Unfinished };
            ToolCallEnded { id, tool, outcome, began: Some((began, seq)), ended: at }
        })
    }
}

/// The call that an event starts, and its tool.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a new event changes only the readers that show it"
)]
fn started(body: &EventBody) -> Option<(&ToolCallId, &str)> {
    match body {
        EventBody::ToolStarted(started) => Some((&started.tool_call_id, &started.tool_name)),
        EventBody::ToolRefused(refused) => Some((&refused.tool_call_id, &refused.tool_name)),
        EventBody::ToolRequested(request) => Some((&request.tool_call_id, &request.tool_name)),
        EventBody::Dispatched(dispatched) => Some((&dispatched.tool_call_id, CALL_AGENT)),
        EventBody::HandedOver(over) => Some((&over.tool_call_id, CALL_AGENT)),
        EventBody::Awaited(awaited) => Some((&awaited.tool_call_id, WAIT_TASK)),
        EventBody::RequestSent(sent) => Some((&sent.tool_call_id, SEND_REQUEST)),
        _ => None,
    }
}
