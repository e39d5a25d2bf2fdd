//! The calls of tools that are under way in one task.
//!
//! A call begins when the journal first tells of it and ends with its result, or with its task. Some
//! models use an id again in a later answer: that is another call.

use std::collections::HashMap;

use antiphon_core::{Event, EventBody, Message, ToolCallId};
use chrono::{DateTime, Utc};

use crate::span::cut;

/// Calls under way that are followed, by task. Of more only the results are counted.
pub(crate) const CALLS_OPEN_MAX: usize = 4096;

/// The tools of the orchestrator's own whose name the journal leaves out.
const CALL_AGENT: &str = "call_agent";
const WAIT_TASK: &str = "wait_task";
const SEND_REQUEST: &str = "send_request";

/// Calls under way.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<ToolCallId, Call>);

#[derive(Debug)]
struct Call {
    began: DateTime<Utc>,
    seq: u64,
    tool: String,
    refused: bool,
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallEnded {
    pub(crate) id: ToolCallId,
    pub(crate) tool: String,
    pub(crate) outcome: CallOutcome,
    /// When, and the event it began with, if that was seen.
    pub(crate) began: Option<(DateTime<Utc>, u64)>,
    pub(crate) ended: DateTime<Utc>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallOutcome {
    Ok,
    Error,
    Refused,
    /// Its task ended first.
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

impl Calls {
    /// Notes that a call began. One that is run again after a crash began when it first did.
    pub(crate) fn begin(&mut self, event: &Event) {
        let Some((id, tool)) = begun(&event.body) else { return };
        let refused = matches!(event.body, EventBody::ToolRefused(_));
        if let Some(call) = self.0.get_mut(id) {
            call.refused |= refused;
        } else if self.0.len() < CALLS_OPEN_MAX {
            let call =
                Call { began: event.at, seq: event.seq.0, tool: cut(tool).to_owned(), refused };
            self.0.insert(id.clone(), call);
        }
    }

    /// The event that a call under way began with.
    pub(crate) fn began(&self, id: &ToolCallId) -> Option<u64> {
        self.0.get(id).map(|call| call.seq)
    }

    /// A message joined the conversation: perhaps the result of a call.
    pub(crate) fn hear(&mut self, message: &Message, at: DateTime<Utc>) -> Option<CallEnded> {
        let Message::ToolResult(result) = message else { return None };
        let call = self.0.remove(&result.tool_call_id);
        let outcome = match (&call, result.is_error) {
            (Some(Call { refused: true, .. }), _) => CallOutcome::Refused,
            (_, true) => CallOutcome::Error,
            (_, false) => CallOutcome::Ok,
        };
        Some(CallEnded {
            id: result.tool_call_id.clone(),
            tool: result.tool_name.clone(),
            outcome,
            began: call.map(|call| (call.began, call.seq)),
            ended: at,
        })
    }

    /// Their task ended, in the order they began.
    pub(crate) fn end(&mut self, at: DateTime<Utc>) -> impl Iterator<Item = CallEnded> + use<> {
        let mut left: Vec<_> = self.0.drain().collect();
        left.sort_by_key(|(_, call)| call.seq);
        left.into_iter().map(move |(id, call)| {
            let Call { began, seq, tool, refused } = call;
            let outcome = if refused { CallOutcome::Refused } else { CallOutcome::Unfinished };
            CallEnded { id, tool, outcome, began: Some((began, seq)), ended: at }
        })
    }
}

/// The call that an event begins, and its tool.
fn begun(body: &EventBody) -> Option<(&ToolCallId, &str)> {
    let call = body.starts_call()?;
    let tool = if let EventBody::ToolStarted(started) = body {
        started.tool_name.as_str()
    } else if let EventBody::ToolRefused(refused) = body {
        refused.tool_name.as_str()
    } else if let EventBody::ToolRequested(request) = body {
        request.tool_name.as_str()
    } else if let EventBody::Awaited(_) = body {
        WAIT_TASK
    } else if let EventBody::RequestSent(_) = body {
        SEND_REQUEST
    } else {
        CALL_AGENT
    };
    Some((call, tool))
}
