//! Ids of traces and spans, and the W3C `traceparent` that carries them between processes.
//!
//! Our ids are derived from tasks, calls and events, so that another process, or this one after a
//! restart, derives the same ids.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Id of a trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Id of a span in its trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// The trace id of a task tree.
    pub(crate) fn derive(root: &str) -> Self {
        Self(derive("trace", &[root]))
    }

    /// The id as bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// The span id of an activity of this kind.
    pub(crate) fn derive(kind: &str, parts: &[&str]) -> Self {
        Self(derive(kind, parts))
    }

    /// The id as bytes.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// The first bytes of a hash. The parts are separated by a zero byte, which none of them contains.
fn derive<const N: usize>(kind: &str, parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new_with_prefix(b"antiphon");
    for part in std::iter::once(&kind).chain(parts) {
        hash.update([0]);
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; N];
    bytes.copy_from_slice(&hash.finalize()[..N]);
    if bytes == [0; N] {
        // All zeros are invalid.
        bytes[N - 1] = 1;
    }
    bytes
}

/// The remote parent of a task, as in the header `traceparent`:
///
/// ```text
/// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Id of the parent span.
    pub span_id: SpanId,
    /// Whether the trace is recorded.
    pub sampled: Sampled,
}

/// Whether a trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampled {
    /// It is recorded.
    Yes,
    /// It is not: no span needs to be sent.
    No,
}

/// Why a text is not a `traceparent`. By the specification it is then ignored and a new trace
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TraceParentError {
    /// Not of the form `VERSION-TRACE-SPAN-FLAGS`.
    #[error("a traceparent is VERSION-TRACE-SPAN-FLAGS in 2, 32, 16 and 2 lower-case hex digits")]
    Shape,
    /// The version `ff` is forbidden.
    #[error("the traceparent version ff is invalid")]
    Version,
    /// An id of all zeros is invalid.
    #[error("the trace and the span of a traceparent must not be all zeros")]
    Zeros,
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        let mut parts = text.trim().splitn(5, '-');
        let version: [u8; 1] = hex(parts.next())?;
        let trace: [u8; 16] = hex(parts.next())?;
        let span: [u8; 8] = hex(parts.next())?;
        let flags: [u8; 1] = hex(parts.next())?;
        if version == [0xff] {
            return Err(TraceParentError::Version);
        }
        // Later versions may append fields; version 00 has none.
        if version == [0] && parts.next().is_some() {
            return Err(TraceParentError::Shape);
        }
        if trace == [0; 16] || span == [0; 8] {
            return Err(TraceParentError::Zeros);
        }
        let sampled = if flags[0] & 1 == 1 { Sampled::Yes } else { Sampled::No };
        Ok(Self { trace_id: TraceId(trace), span_id: SpanId(span), sampled })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = match self.sampled {
            Sampled::Yes => "01",
            Sampled::No => "00",
        };
        write!(f, "00-{}-{}-{flags}", self.trace_id, self.span_id)
    }
}

fn hex<const N: usize>(part: Option<&str>) -> Result<[u8; N], TraceParentError> {
    let digits = part.map(str::as_bytes).filter(|digits| digits.len() == 2 * N);
    let digits = digits.ok_or(TraceParentError::Shape)?;
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

/// Only lower-case digits are allowed.
fn digit(byte: u8) -> Result<u8, TraceParentError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(TraceParentError::Shape),
    }
}

macro_rules! written_in_hex {
    ($($name:ident)*) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )* };
}
written_in_hex!(TraceId SpanId);
