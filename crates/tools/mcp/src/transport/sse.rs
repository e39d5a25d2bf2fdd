//! Server-sent events of an HTTP server, bounded and repaired.
//!
//! The stream ends instead of failing: after a failure `rmcp` would reconnect at once, again and
//! again. For the same reason a server cannot ask for a reconnect in less than a second.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::Response;
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_core::{SseDecoder, SseEvent};
use sse_stream::Sse;

use crate::transport::lines::answered;
use crate::transport::wire::{MESSAGE_BYTES_MAX, decode, too_large, unreadable};

/// Shortest and longest reconnect delay a server may ask for, in milliseconds.
const RETRY_MS: std::ops::RangeInclusive<u64> = 1_000..=60_000;

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(MESSAGE_BYTES_MAX).unwrap();

/// The events of a response. `request` is the request it answers, if there is one.
pub(crate) fn events(
    response: Response,
    request: Option<RequestId>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let body = Body {
        chunks: response.bytes_stream().map(Result::ok).boxed(),
        decoder: SseDecoder::with_limit(EVENT_LIMIT),
        ready: VecDeque::new(),
        request,
        ended: false,
    };
    stream::unfold(body, |mut body| async {
        let event = body.next().await?;
        Some((Ok(event), body))
    })
    .boxed()
}

struct Body {
    /// An item of `None` means that the connection broke.
    chunks: BoxStream<'static, Option<Bytes>>,
    decoder: SseDecoder,
    ready: VecDeque<Sse>,
    request: Option<RequestId>,
    ended: bool,
}

impl Body {
    async fn next(&mut self) -> Option<Sse> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            match self.chunks.next().await {
                Some(Some(chunk)) => self.take(chunk),
                Some(None) | None => self.ended = true,
            }
        }
    }

    fn take(&mut self, mut chunk: Bytes) {
        while let Some(event) = self.decoder.next(&mut chunk) {
            match event {
                Ok(SseEvent::Message(message)) => {
                    let id = message.last_event_id.map(|id| id.to_string());
                    let data = repaired(&message.data);
                    self.ready.push_back(Sse {
                        event: Some(message.event.into_owned()),
                        data,
                        id,
                        retry: None,
                    });
                }
                Ok(SseEvent::Retry(milliseconds)) => {
                    let retry = u64::from(milliseconds).clamp(*RETRY_MS.start(), *RETRY_MS.end());
                    self.ready.push_back(Sse { retry: Some(retry), ..Sse::default() });
                }
                Err(_) => {
                    tracing::warn!(
                        "an MCP server sent an event larger than {MESSAGE_BYTES_MAX} bytes"
                    );
                    let answer = self.request.take().map(too_large);
                    self.ready.extend(answer.as_ref().and_then(event_of));
                    self.ended = true;
                    return;
                }
            }
        }
    }
}

/// The repaired text of a message; `None` if the data is not a message.
fn repaired(data: &str) -> Option<String> {
    let bytes = data.as_bytes();
    let message = decode(bytes).ok().or_else(|| answered(bytes).map(unreadable))?;
    serde_json::to_string(&message).ok()
}

fn event_of(message: &ServerJsonRpcMessage) -> Option<Sse> {
    Some(Sse { data: Some(serde_json::to_string(message).ok()?), ..Sse::default() })
}
