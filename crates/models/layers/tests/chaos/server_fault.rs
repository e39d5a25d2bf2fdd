//! Faults of the server, and the errors that each explains.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_server::{Ending, Part, Reply};

use crate::answer::events;
use crate::random::Random;

/// The `retry-after` of a rate limit.
const RETRY_AFTER: Duration = Duration::from_millis(12);

/// What the server does with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerFault {
    Answered {
        chunk_bytes: usize,
    },
    /// Closes the connection after this many events.
    Cut {
        events: usize,
    },
    /// Stalls after this many events.
    Stalled {
        events: usize,
    },
    /// Sends an invalid event after this many events.
    Garbled {
        events: usize,
    },
    /// Sends an error after this many events.
    Failed {
        events: usize,
    },
    /// Sends a web page, with a successful status or not.
    Page {
        status: u16,
    },
    RateLimited,
    Overloaded,
    ServerError,
    /// Closes the connection before the response.
    Reset,
    /// Closes the connection in the middle of the response head.
    HalfHead,
}

impl ServerFault {
    pub(crate) fn draw(random: &mut Random, n: usize) -> Self {
        let events = random.below(events(n).len());
        match random.below(100) {
            0..46 => Self::Answered { chunk_bytes: 1 + random.below(200) },
            46..54 => Self::Cut { events },
            54..60 => Self::Stalled { events },
            60..65 => Self::Garbled { events },
            65..70 => Self::Failed { events },
            70..73 => Self::Page { status: 200 },
            73..76 => Self::Page { status: 502 },
            76..83 => Self::RateLimited,
            83..88 => Self::Overloaded,
            88..92 => Self::ServerError,
            92..96 => Self::Reset,
            _ => Self::HalfHead,
        }
    }

    pub(crate) fn reply(self, n: usize) -> Reply {
        let begun = |count: usize| Reply::events(events(n)[..count].concat());
        let followed_by = |count: usize, event: &str| {
            Reply::events(events(n)[..count].concat() + "data: " + event + "\n\n")
        };
        let raw = |bytes: &[u8]| Reply {
            status: 0,
            headers: Vec::new(),
            parts: vec![Part::Bytes(bytes.to_vec())],
            ending: Ending::Raw,
        };
        match self {
            Self::Answered { chunk_bytes } => Reply::events(events(n).concat()).split(chunk_bytes),
            Self::Cut { events } => begun(events).ending(Ending::Cut),
            Self::Stalled { events } => begun(events).ending(Ending::Stall),
            Self::Garbled { events } => followed_by(events, r#"{"type": "content_bl"#),
            Self::Failed { events } => followed_by(events, &error("overloaded_error")),
            Self::Page { status } => Reply {
                status,
                headers: vec![("content-type".to_owned(), "text/html".to_owned())],
                parts: vec![Part::Bytes(b"<!doctype html><p>Hello".to_vec())],
                ending: Ending::Complete,
            },
            Self::RateLimited => Reply::json(429, error("rate_limit_error"))
                .header("retry-after-ms", &RETRY_AFTER.as_millis().to_string()),
            Self::Overloaded => Reply::json(529, error("overloaded_error")),
            Self::ServerError => Reply::json(500, error("api_error")),
            Self::Reset => raw(b""),
            Self::HalfHead => raw(b"HTTP/1.1 200 OK\r\ncontent-ty"),
        }
    }

    /// Whether a caller may get this error because of it.
    pub(crate) fn explains(self, error: &ProviderError) -> bool {
        let message = || "as told".to_owned();
        match self {
            Self::Answered { .. } => false,
            Self::Cut { events: 0 } | Self::Reset | Self::HalfHead => {
                matches!(error, ProviderError::Connection { .. })
            }
            Self::Cut { .. } => *error == ProviderError::Cut,
            Self::Stalled { .. } => matches!(error, ProviderError::Timeout { .. }),
            Self::Garbled { .. } => matches!(error, ProviderError::Protocol { .. }),
            // As the login page of a network.
            Self::Page { status: 200 } => matches!(error, ProviderError::Connection { .. }),
            Self::Page { status: found } => {
                matches!(error, ProviderError::Server { status, .. } if *status == found)
            }
            Self::RateLimited => {
                let retry_after = Some(RETRY_AFTER);
                *error == ProviderError::RateLimited { message: message(), retry_after }
            }
            Self::Failed { .. } | Self::Overloaded => {
                *error == ProviderError::Overloaded { message: message(), retry_after: None }
            }
            Self::ServerError => {
                let (message, retry_after) = (message(), None);
                *error == ProviderError::Server { status: 500, message, retry_after }
            }
        }
    }
}

fn error(kind: &str) -> String {
    format!(r#"{{"type": "error", "error": {{"type": "{kind}", "message": "as told"}}}}"#)
}
