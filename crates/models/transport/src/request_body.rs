//! The body of a request in parts, which it may share with later requests: a long history is not copied to be sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The bytes of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestBody {
    /// In order; none is empty.
    parts: Vec<Bytes>,
}

impl RequestBody {
    /// The body of these parts, in order.
    pub(crate) fn of(parts: impl IntoIterator<Item = Bytes>) -> Self {
        Self { parts: parts.into_iter().filter(|part| !part.is_empty()).collect() }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Whether nothing is sent.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Its parts.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::of([bytes.into()])
    }
}

/// A body of one part can be sent again on another connection when a server has closed the first one; the parts of a
/// longer body are sent as they are, with the length of all of them.
impl From<RequestBody> for reqwest::Body {
    fn from(mut body: RequestBody) -> Self {
        if body.parts.len() <= 1 {
            return body.parts.pop().unwrap_or_default().into();
        }
        let left = body.len() as u64;
        Self::wrap(SentParts { parts: body.parts.into_iter(), left })
    }
}

/// Parts that are sent.
struct SentParts {
    parts: std::vec::IntoIter<Bytes>,
    /// Bytes of the parts that are left.
    left: u64,
}

impl Body for SentParts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.next();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
