//! Records the exchanges of a provider.
//!
//! The answer itself is not changed, and never fails because of the recording: when recording
//! fails, it stops, and [`Recorder::failure`] gives the reason. Keys are not recorded. Those of
//! providers are in no request; text that looks like a key in a request, an answer or an error
//! becomes `[redacted]`. A delta that may contain part of a key is written when that is decided,
//! and later pieces after it.

mod redaction;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_core::Stream;

use crate::recording::written;
use crate::recording::{Body, Ending, Log, RecordingError};
use redaction::Redaction;

/// A provider whose exchanges are written to a file. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct Recorder<P> {
    inner: P,
    log: Arc<Log>,
}

impl<P: Provider> Recorder<P> {
    /// Records the exchanges of `inner`, after those already in the recording at `path`. The file
    /// is private (0600), and no other recorder can write to it meanwhile.
    pub fn append(inner: P, path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        Ok(Self { inner, log: Arc::new(Log::append(path.as_ref())?) })
    }

    /// Why recording stopped; `None` as long as everything was recorded.
    pub fn failure(&self) -> Option<RecordingError> {
        self.log.failure()
    }
}

impl<P: Provider> Provider for Recorder<P> {
    fn open(&self, request: Request) -> PieceSource {
        Box::pin(Recorded {
            source: self.inner.open(request.clone()),
            exchange: RecordedExchange {
                log: Arc::clone(&self.log),
                state: State::Unread(Box::new(request)),
            },
        })
    }
}

struct Recorded {
    source: PieceSource,
    exchange: RecordedExchange,
}

impl Stream for Recorded {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.exchange.begin();
        let item = ready!(self.source.as_mut().poll_next(cx));
        match &item {
            Some(Ok(Piece::Done)) => self.exchange.end(Ending::Done),
            Some(Ok(piece)) => self.exchange.piece(piece.clone()),
            Some(Err(error)) => self.exchange.end(Ending::Failed(error.clone())),
            None => self.exchange.end(Ending::Cut),
        }
        Poll::Ready(item)
    }
}

/// One exchange that is being recorded.
struct RecordedExchange {
    log: Arc<Log>,
    state: State,
}

enum State {
    /// The answer was not polled yet.
    Unread(Box<Request>),
    Running {
        exchange: u64,
        redaction: Redaction,
    },
    Ended,
}

impl RecordedExchange {
    fn begin(&mut self) {
        let State::Unread(request) = &self.state else { return };
        let exchange = match written(request) {
            Ok(json) => self.log.begin(json),
            Err(error) => {
                self.log.refuse(error.to_string());
                None
            }
        };
        self.state = match exchange {
            Some(exchange) => State::Running { exchange, redaction: Redaction::default() },
            None => State::Ended,
        };
    }

    fn piece(&mut self, piece: Piece) {
        let State::Running { exchange, redaction } = &mut self.state else { return };
        match redaction.take(piece) {
            Ok(pieces) => {
                for piece in pieces {
                    self.log.write(*exchange, Body::Piece(piece));
                }
            }
            Err(reason) => {
                self.log.refuse(reason);
                self.state = State::Ended;
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        if let State::Running { exchange, mut redaction } =
            std::mem::replace(&mut self.state, State::Ended)
        {
            for piece in redaction.finish() {
                self.log.write(exchange, Body::Piece(piece));
            }
            self.log.write(exchange, Body::End(ending));
        }
    }
}

impl Drop for RecordedExchange {
    fn drop(&mut self) {
        self.end(Ending::Dropped);
    }
}
