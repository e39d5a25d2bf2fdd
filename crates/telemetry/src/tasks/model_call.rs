//! One model call: from the start of thinking until the answer is in the journal.
//!
//! An interrupted answer is kept until the next event of its task, which gives the reason.

use antiphon_core::{AssistantMessage, Message, ModelRef, StopReason, Usage, UsageRecorded};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::tasks::TaskFacts;

/// Longest error code, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// A running model call.
#[derive(Debug)]
pub(crate) struct ModelCall {
    pub(crate) began: DateTime<Utc>,
    /// Sequence number of the first event.
    pub(crate) seq: u64,
    requested: Option<ModelRef>,
    /// The partial answer and when it was interrupted.
    broken: Option<(Answer, DateTime<Utc>)>,
}

/// A model call that ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelCallEnded {
    pub(crate) began: DateTime<Utc>,
    pub(crate) ended: DateTime<Utc>,
    /// Sequence number of the first event.
    pub(crate) seq: u64,
    /// The requested model.
    pub(crate) requested: Option<ModelRef>,
    /// The model that answered.
    pub(crate) answered: Option<ModelRef>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Option<Usage>,
    /// A code for what went wrong, never a text.
    pub(crate) error: Option<String>,
    /// Whether the call made a summary instead of a turn.
    pub(crate) compaction: bool,
}

#[derive(Debug, Default)]
struct Answer {
    model: Option<ModelRef>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
}

impl ModelCall {
    pub(crate) fn begin(facts: &TaskFacts, at: DateTime<Utc>, seq: u64) -> Self {
        Self { began: at, seq, requested: facts.model.clone(), broken: None }
    }

    /// Handles a new message. Returns the end of the call if the message is the complete answer.
    pub(crate) fn message(
        &mut self,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Option<ModelCallEnded> {
        let Message::Assistant(message) = message else { return None };
        let answer = Answer::from(message);
        match message.stop_reason {
            StopReason::Error | StopReason::Aborted => {
                self.broken = Some((answer, at));
                None
            }
            StopReason::EndTurn
            | StopReason::Length
            | StopReason::ToolUse
            | StopReason::Unknown => Some(self.end(answer, None, at)),
        }
    }

    /// Records the cost of an interrupted answer, which may be empty.
    pub(crate) fn usage_recorded(&mut self, recorded: &UsageRecorded, at: DateTime<Utc>) {
        let (answer, _) = self.broken.get_or_insert_with(|| (Answer::default(), at));
        answer.model = answer.model.take().or_else(|| ModelRef::parse(&recorded.model).ok());
        answer.usage = Some(recorded.usage);
    }

    /// Whether a partial answer exists.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Ends the call without an answer.
    pub(crate) fn interrupt(mut self, word: &str, at: DateTime<Utc>) -> ModelCallEnded {
        let (answer, broke_at) = self.broken.take().unwrap_or((Answer::default(), at));
        self.end(answer, Some(word), broke_at)
    }

    fn end(&mut self, answer: Answer, error: Option<&str>, at: DateTime<Utc>) -> ModelCallEnded {
        let Answer { model, stop, usage } = answer;
        ModelCallEnded {
            began: self.began,
            ended: at,
            seq: self.seq,
            requested: self.requested.take(),
            answered: model,
            stop,
            usage,
            error: error.map(str::to_owned),
            compaction: false,
        }
    }
}

impl ModelCallEnded {
    /// A call outside of a turn. The journal does not contain its start; the event before it was
    /// synced right before the request.
    pub(crate) fn outside_of_turn(
        recorded: &UsageRecorded,
        (began, seq): (DateTime<Utc>, u64),
        at: DateTime<Utc>,
    ) -> Self {
        let model = ModelRef::parse(&recorded.model).ok();
        Self {
            began,
            ended: at,
            seq,
            requested: model.clone(),
            answered: model,
            stop: None,
            usage: Some(recorded.usage),
            error: None,
            compaction: true,
        }
    }
}

impl From<&AssistantMessage> for Answer {
    fn from(message: &AssistantMessage) -> Self {
        Self {
            model: message.model.clone(),
            stop: Some(message.stop_reason),
            usage: Some(message.usage),
        }
    }
}

/// The error code of a failed task. The texts are not used: they may quote the conversation.
pub(crate) fn error_code(detail: Option<&Value>) -> String {
    let code = detail.and_then(|detail| detail.get("code")).and_then(Value::as_str);
    let plain = |code: &&str| {
        let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        !code.is_empty() && code.len() <= CODE_BYTES_MAX && code.bytes().all(word)
    };
    code.filter(plain).unwrap_or("failed").to_owned()
}
