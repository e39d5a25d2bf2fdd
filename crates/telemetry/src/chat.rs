//! One call of a model: from when the agent began to think until its answer is in the journal.
//!
//! An answer that broke off waits for the next event of its task, which says why.

use antiphon_core::{AssistantMessage, Message, ModelRef, StopReason, Usage, UsageRecorded};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::book::TaskFacts;

/// Longest word for what went wrong, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// A call that is under way.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) began: DateTime<Utc>,
    /// The event it began with.
    pub(crate) seq: u64,
    asked: Option<ModelRef>,
    /// What there was of an answer that broke off, and when.
    broken: Option<(Answer, DateTime<Utc>)>,
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatEnded {
    pub(crate) began: DateTime<Utc>,
    pub(crate) ended: DateTime<Utc>,
    /// The event it began with.
    pub(crate) seq: u64,
    /// Who was asked.
    pub(crate) asked: Option<ModelRef>,
    /// Who answered.
    pub(crate) answered: Option<ModelRef>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Option<Usage>,
    /// A word for what went wrong, never a text.
    pub(crate) error: Option<String>,
    /// It was not a turn, but a summary of what was said.
    pub(crate) compaction: bool,
}

#[derive(Debug, Default)]
struct Answer {
    model: Option<ModelRef>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
}

impl Chat {
    pub(crate) fn begin(facts: &TaskFacts, at: DateTime<Utc>, seq: u64) -> Self {
        Self { began: at, seq, asked: facts.model.clone(), broken: None }
    }

    /// A message joined the conversation. The end, if it is the whole answer.
    pub(crate) fn hear(&mut self, message: &Message, at: DateTime<Utc>) -> Option<ChatEnded> {
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

    /// The model was paid for an answer that broke off, perhaps before it said anything.
    pub(crate) fn pay(&mut self, recorded: &UsageRecorded, at: DateTime<Utc>) {
        let (answer, _) = self.broken.get_or_insert_with(|| (Answer::default(), at));
        answer.model = answer.model.take().or_else(|| ModelRef::parse(&recorded.model).ok());
        answer.usage = Some(recorded.usage);
    }

    /// Whether there was something of an answer.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// There will be no answer.
    pub(crate) fn cut_off(mut self, word: &str, at: DateTime<Utc>) -> ChatEnded {
        let (answer, broke_at) = self.broken.take().unwrap_or((Answer::default(), at));
        self.end(answer, Some(word), broke_at)
    }

    fn end(&mut self, answer: Answer, error: Option<&str>, at: DateTime<Utc>) -> ChatEnded {
        let Answer { model, stop, usage } = answer;
        ChatEnded {
            began: self.began,
            ended: at,
            seq: self.seq,
            asked: self.asked.take(),
            answered: model,
            stop,
            usage,
            error: error.map(str::to_owned),
            compaction: false,
        }
    }
}

impl ChatEnded {
    /// A call that was no turn. The journal does not say when it began: what came before it was made
    /// durable right before it was sent.
    pub(crate) fn aside(
        recorded: &UsageRecorded,
        (began, seq): (DateTime<Utc>, u64),
        at: DateTime<Utc>,
    ) -> Self {
        let model = ModelRef::parse(&recorded.model).ok();
        Self {
            began,
            ended: at,
            seq,
            asked: model.clone(),
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

/// The word by which a failed task says what went wrong. Its texts may quote what was said.
pub(crate) fn error_code(detail: Option<&Value>) -> String {
    let code = detail.and_then(|detail| detail.get("code")).and_then(Value::as_str);
    let plain = |code: &&str| {
        let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        !code.is_empty() && code.len() <= CODE_BYTES_MAX && code.bytes().all(word)
    };
    code.filter(plain).unwrap_or("failed").to_owned()
}
