//! A finished span.
//!
//! Attributes are names, codes and numbers. They never contain what a model, a user or a tool said.

use chrono::{DateTime, Utc};

use crate::trace::trace_parent::{SpanId, TraceId};

/// Longest name or attribute text, in bytes. A longer one is truncated.
pub const ATTRIBUTE_BYTES_MAX: usize = 256;

/// A finished span.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    /// Id of its trace.
    pub trace_id: TraceId,
    /// Id of the span in its trace.
    pub span_id: SpanId,
    /// Id of the parent span; absent for the root.
    pub parent: Option<SpanId>,
    /// Such as `invoke_agent planner`, `chat claude-sonnet-4-5`, `execute_tool bash`.
    pub name: String,
    /// Whether the operation ran here or at a remote service.
    pub kind: SpanKind,
    /// Start time.
    pub began: DateTime<Utc>,
    /// End time.
    pub ended: DateTime<Utc>,
    /// Attributes with the names of the conventions.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether the operation failed.
    pub status: SpanStatus,
}

/// Where an operation ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// In this process.
    Internal,
    /// At a remote service.
    Client,
}

/// Whether an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    /// No failure is known.
    Unset,
    /// It failed; the attribute `error.type` says how.
    Error,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A list of texts.
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

/// Truncates a text to [`ATTRIBUTE_BYTES_MAX`].
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ATTRIBUTE_BYTES_MAX)]
}
