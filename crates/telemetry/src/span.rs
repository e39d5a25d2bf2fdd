//! A span: something that began, ended, and was caused by another.
//!
//! Its attributes are names, words and numbers. What was said, to a model or by one, to a tool or by
//! one, is never among them.

use chrono::{DateTime, Utc};

use crate::trace_parent::{SpanId, TraceId};

/// Longest text of an attribute or a name, in bytes. What is longer is cut.
pub const ATTRIBUTE_BYTES_MAX: usize = 256;

/// A span that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    /// Its trace.
    pub trace_id: TraceId,
    /// Which of its spans.
    pub span_id: SpanId,
    /// What caused it.
    pub parent: Option<SpanId>,
    /// `invoke_agent planner`, `chat claude-sonnet-4-5`, `execute_tool bash`.
    pub name: String,
    /// Where it happened.
    pub kind: SpanKind,
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// What else is known of it, in the words of the conventions.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether it went wrong.
    pub status: SpanStatus,
}

/// Where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Here.
    Internal,
    /// At somebody else's, who was asked.
    Client,
}

/// Whether something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    /// Not that anybody knows.
    Unset,
    /// It did; `error.type` says how.
    Error,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A word.
    Text(String),
    /// Words.
    Texts(Vec<String>),
    /// A number.
    Int(i64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(cut(text).to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// As much of a text as there is room for.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ATTRIBUTE_BYTES_MAX)]
}
