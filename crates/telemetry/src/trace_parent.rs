//! Names of traces and spans, and the W3C `traceparent` that carries them between programs.
//!
//! Ours are derived from what they stand for, so that whoever tells of the same thing again, after a
//! restart or from another process, uses the same names.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Names one trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Names one span of a trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// The trace of a tree of tasks.
    pub(crate) fn derive(root: &str) -> Self {
        Self(derive("trace", &[root]))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// The span of something of this kind that happened in a task.
    pub(crate) fn derive(kind: &str, parts: &[&str]) -> Self {
        Self(derive(kind, parts))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// The first bytes of a hash. Parts cannot run into each other: none of them holds a zero byte.
fn derive<const N: usize>(kind: &str, parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new_with_prefix(b"antiphon");
    for part in std::iter::once(&kind).chain(parts) {
        hash.update([0]);
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; N];
    bytes.copy_from_slice(&hash.finalize()[..N]);
    if bytes == [0; N] {
        // Zeros mean that there is none.
        bytes[N - 1] = 1;
    }
    bytes
}

/// Where in a trace of somebody else's a task belongs, as in the header `traceparent`:
///
/// ```text
/// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: TraceId,
    /// The span that is the cause.
    pub span_id: SpanId,
    /// Whether the trace is kept.
    pub sampled: Sampled,
}

/// Whether a trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampled {
    /// Somebody keeps it.
    Yes,
    /// Nobody does: nothing need be told.
    No,
}

/// Why a text is no `traceparent`. The specification has it ignored: the trace is begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TraceParentError {
    /// It is not made of `VERSION-TRACE-SPAN-FLAGS`.
    #[error("a traceparent is VERSION-TRACE-SPAN-FLAGS in 2, 32, 16 and 2 lower-case hex digits")]
    Shape,
    /// The version `ff` is forbidden.
    #[error("there is no traceparent of version ff")]
    Version,
    /// All zeros name nothing.
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
        // Later versions may say more behind it, this one does not.
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
