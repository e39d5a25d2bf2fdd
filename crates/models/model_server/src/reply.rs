//! Replies of the server.

use std::time::Duration;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status code.
    pub status: u16,
    /// Headers in addition to those of the framing.
    pub headers: Vec<(String, String)>,
    /// The body in parts; each is flushed on its own.
    pub parts: Vec<Part>,
    /// What happens after the last part.
    pub ending: Ending,
}

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A pause.
    Wait(Duration),
    /// A pause until the test ends it with [`ModelServer::release`](crate::ModelServer::release).
    Hold,
}

/// How held replies continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Their next part is sent.
    Continue,
    /// Their connections are closed.
    Cut,
}

/// What happens after the last part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The body is closed correctly; the connection stays open.
    Complete,
    /// The connection is closed although the body is not.
    Cut,
    /// Nothing more is sent, and nothing is closed.
    Stall,
    /// Instead of all that: the parts as they are, without any HTTP.
    Raw,
}

impl Reply {
    /// A stream of server-sent events.
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            parts: vec![Part::Bytes(body.into())],
            ending: Ending::Complete,
        }
    }

    /// A JSON document.
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            parts: vec![Part::Bytes(body.into())],
            ending: Ending::Complete,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Changes the ending.
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// The same bytes, flushed `size` at a time: parts end anywhere, also inside of a character.
    pub fn split(mut self, size: usize) -> Self {
        let split = |part: Part| match part {
            Part::Bytes(bytes) => {
                bytes.chunks(size.max(1)).map(|chunk| Part::Bytes(chunk.to_vec())).collect()
            }
            Part::Wait(_) | Part::Hold => vec![part],
        };
        self.parts = self.parts.into_iter().flat_map(split).collect();
        self
    }
}
