//! The stream of a remote task.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use a2a::StreamResponse;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use sse_core::{SseDecoder, SseEvent};

use crate::card::Binding;
use crate::connection::{http_error, malformed, result, unreachable};
use crate::failure::Failure;

/// Largest event, in bytes.
pub(crate) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(EVENT_BYTES_MAX).unwrap();

/// The stream of a remote task. It does not reconnect.
pub(crate) struct EventStream {
    response: Response,
    decoder: SseDecoder,
    binding: Binding,
    ready: VecDeque<StreamResponse>,
}

impl EventStream {
    pub(crate) fn new(response: Response, binding: Binding) -> Self {
        let decoder = SseDecoder::with_limit(EVENT_LIMIT);
        Self { response, decoder, binding, ready: VecDeque::new() }
    }

    /// The next event; `None` at the end. Cancel safe: bytes that have not arrived stay.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamResponse>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.map_err(|error| unreachable(&error))?;
            let Some(mut chunk) = chunk else { return Ok(None) };
            while let Some(decoded) = self.decoder.next(&mut chunk) {
                match decoded {
                    Ok(SseEvent::Message(message)) => {
                        let event = parse(self.binding, &message.data)?;
                        self.ready.push_back(event);
                    }
                    Ok(SseEvent::Retry(_)) => {}
                    Err(_) => {
                        let reason = format!("an event has more than {EVENT_BYTES_MAX} bytes");
                        return Err(Failure::Refused(reason));
                    }
                }
            }
        }
    }
}

fn parse(binding: Binding, data: &str) -> Result<StreamResponse, Failure> {
    let json: Value = serde_json::from_str(data).map_err(|error| malformed(&error.to_string()))?;
    let json = match binding {
        Binding::JsonRpc => result(json)?,
        Binding::HttpJson if json.get("error").is_some() => {
            return Err(http_error(StatusCode::INTERNAL_SERVER_ERROR, &json));
        }
        Binding::HttpJson => json,
    };
    serde_json::from_value(json).map_err(|error| malformed(&error.to_string()))
}
