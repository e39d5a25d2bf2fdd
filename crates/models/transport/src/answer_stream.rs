//! One answer on the wire, from the request to the last piece.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::redaction::Secrets;
use antiphon_core::{Piece, ProviderError};
use bytes::Bytes;
use futures_core::Stream;
use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response};
use sse_core::{MessageEvent, SseDecoder, SseEvent};
use tokio::time::{Sleep, sleep};

use crate::dialect::Dialect;
use crate::endpoint::Post;
use crate::failure::{ERROR_BODY_BYTES_MAX, HttpFailure, connection};

/// Largest server-sent event, in bytes. A larger one is a protocol error.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a complete answer waits for its body to end, so that the connection can be reused. Most
/// servers close the body right after the last event; otherwise the next request opens a new
/// connection.
const LINGER: Duration = Duration::from_millis(5);

const WEB_PAGE: &str = "the address answered with a web page, as a network with a login page does: check the \
                        network, base_url and proxy";

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(EVENT_BYTES_MAX).unwrap();

pub(crate) struct Source<D> {
    dialect: D,
    secrets: Secrets,
    state: State,
    pieces: Vec<Piece>,
    ready: VecDeque<Piece>,
}

enum State {
    /// The request is being sent.
    Sending(BoxFuture<'static, Result<Response, ProviderError>>),
    FailedSource(BoxFuture<'static, HttpFailure>),
    Reading(Box<Body>),
    /// The answer is complete; `Done` is delayed until the body ends or `LINGER` has passed.
    Lingering(Box<Body>, Pin<Box<Sleep>>),
    Ended,
}

struct Body {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    /// Bytes before the first event, at most [`ERROR_BODY_BYTES_MAX`]. Without any event, they are
    /// the error document.
    head: Vec<u8>,
    unread: Bytes,
    decoder: SseDecoder,
    status: u16,
    events: u64,
    /// The last chunk has produced no piece yet.
    fresh: bool,
    ended: bool,
}

/// The next part of a body.
enum BodyEvent {
    Event(MessageEvent),
    /// Bytes that complete no event: a comment, or part of a long event.
    Bytes,
    End,
}

impl<D: Dialect> Source<D> {
    pub(crate) fn new(client: Client, post: Post, dialect: D) -> Self {
        Self {
            dialect,
            secrets: post.secrets.clone(),
            state: State::Sending(Box::pin(send(client, post))),
            pieces: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Reads until there is a piece or the body ends.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ProviderError>> {
        match &mut self.state {
            State::Sending(sending) => {
                let response = ready!(sending.as_mut().poll(cx))?;
                self.state = if response.status() == 200 {
                    State::Reading(Box::new(Body::new(response)?))
                } else {
                    State::FailedSource(Box::pin(read_failure(response)))
                };
                Poll::Ready(Ok(()))
            }
            State::FailedSource(reading) => {
                let mut failure = ready!(reading.as_mut().poll(cx));
                self.secrets.redact(&mut failure.body);
                Poll::Ready(Err(failure.with_retry_advice(self.dialect.failure(&failure))))
            }
            State::Reading(body) => {
                match ready!(body.poll_next(cx))? {
                    BodyEvent::Event(mut event) => {
                        self.secrets.redact(&mut event.data);
                        match self.dialect.event(&event.event, &event.data, &mut self.pieces) {
                            // The body ended inside of this event: the error is the interruption,
                            // not the format.
                            Err(ProviderError::Protocol { .. }) if body.ended => {
                                return Poll::Ready(Err(ProviderError::Cut));
                            }
                            read => read?,
                        }
                        // Bytes arrived without a piece: report that the provider still sends.
                        if self.pieces.is_empty() {
                            self.pieces.push(Piece::Alive);
                        }
                    }
                    BodyEvent::Bytes => self.pieces.push(Piece::Alive),
                    BodyEvent::End if body.events == 0 => {
                        return Poll::Ready(Err(body.no_events(&self.dialect, &self.secrets)));
                    }
                    BodyEvent::End => {
                        self.state = State::Ended;
                        self.dialect.end(&mut self.pieces)?;
                    }
                }
                self.ready.extend(self.pieces.drain(..));
                Poll::Ready(Ok(()))
            }
            State::Lingering(..) | State::Ended => Poll::Ready(Ok(())),
        }
    }

    /// Waits for the end of the body, so that the connection can be reused.
    fn linger(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Ended) {
            State::Reading(body) => State::Lingering(body, Box::pin(sleep(LINGER))),
            State::Sending(_) | State::FailedSource(_) | State::Lingering(..) | State::Ended => {
                State::Ended
            }
        };
    }
}

impl<D: Dialect> Stream for Source<D> {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let State::Lingering(body, deadline) = &mut self.state {
                match body.chunks.as_mut().poll_next(cx) {
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Ready(None | Some(Err(_))) => {}
                    Poll::Pending => ready!(deadline.as_mut().poll(cx)),
                }
                self.state = State::Ended;
                self.ready.clear();
                return Poll::Ready(Some(Ok(Piece::Done)));
            }
            match self.ready.pop_front() {
                Some(Piece::Done) if matches!(self.state, State::Reading(_)) => {
                    self.linger();
                    continue;
                }
                Some(piece) => return Poll::Ready(Some(Ok(piece))),
                None if matches!(self.state, State::Ended) => return Poll::Ready(None),
                None => {}
            }
            if let Err(error) = ready!(self.advance(cx)) {
                self.state = State::Ended;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl Body {
    fn new(response: Response) -> Result<Self, ProviderError> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/html")) {
            // The provider itself sends none: something on the way to it answered.
            return Err(ProviderError::Connection { message: WEB_PAGE.to_owned() });
        }
        Ok(Self {
            status: response.status().as_u16(),
            head: Vec::new(),
            chunks: Box::pin(response.bytes_stream()),
            unread: Bytes::new(),
            decoder: SseDecoder::with_limit(EVENT_LIMIT),
            events: 0,
            fresh: false,
            ended: false,
        })
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyEvent, ProviderError>> {
        loop {
            match self.decoder.next(&mut self.unread) {
                Some(Ok(SseEvent::Message(event))) => {
                    self.events += 1;
                    self.fresh = false;
                    return Poll::Ready(Ok(BodyEvent::Event(event)));
                }
                Some(Ok(SseEvent::Retry(_))) => continue,
                Some(Err(_)) => {
                    return Poll::Ready(Err(ProviderError::Protocol {
                        message: format!("an event of more than {EVENT_BYTES_MAX} bytes"),
                    }));
                }
                None if self.ended => return Poll::Ready(Ok(BodyEvent::End)),
                None if self.fresh => {
                    self.fresh = false;
                    return Poll::Ready(Ok(BodyEvent::Bytes));
                }
                None => {}
            }
            match ready!(self.chunks.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) => {
                    if self.events == 0 {
                        extend_up_to(&mut self.head, &chunk, ERROR_BODY_BYTES_MAX);
                    }
                    self.unread = chunk;
                    self.fresh = true;
                }
                // After the first event, a connection error means an interrupted answer.
                Some(Err(_)) if self.events > 0 => return Poll::Ready(Err(ProviderError::Cut)),
                Some(Err(error)) => return Poll::Ready(Err(connection(&error))),
                None => {
                    // Some servers omit the blank line after their last event.
                    self.unread = Bytes::from_static(b"\n\n");
                    self.ended = true;
                }
            }
        }
    }

    /// A document instead of a stream: an error with a wrong status, or another server.
    fn no_events(&self, dialect: &impl Dialect, secrets: &Secrets) -> ProviderError {
        let (status, retry_after) = (self.status, None);
        let mut body = String::from_utf8_lossy(&self.head).into_owned();
        secrets.redact(&mut body);
        if body.trim_start().starts_with('<') {
            ProviderError::Connection { message: WEB_PAGE.to_owned() }
        } else if body.trim_start().starts_with(['{', '[']) {
            dialect.failure(&HttpFailure { status, retry_after, should_retry: None, body })
        } else {
            let message = "it answered with nothing: check base_url".to_owned();
            ProviderError::Server { status, message, retry_after }
        }
    }
}

async fn send(client: Client, post: Post) -> Result<Response, ProviderError> {
    client
        .post(post.endpoint.url().clone())
        .headers(post.headers)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
        .body(post.body)
        .send()
        .await
        .map_err(|error| connection(&error))
}

async fn read_failure(mut response: Response) -> HttpFailure {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    while body.len() < ERROR_BODY_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        extend_up_to(&mut body, &chunk, ERROR_BODY_BYTES_MAX);
    }
    HttpFailure::new(status, &headers, &body)
}

fn extend_up_to(bytes: &mut Vec<u8>, more: &[u8], bytes_max: usize) {
    let room = bytes_max.saturating_sub(bytes.len());
    bytes.extend_from_slice(&more[..more.len().min(room)]);
}

/// An answer that fails before anything is sent.
pub fn failed_source(error: ProviderError) -> antiphon_core::PieceSource {
    Box::pin(FailedSource(Some(error)))
}

struct FailedSource(Option<ProviderError>);

impl Stream for FailedSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}
