//! Falls back to another model when the first cannot answer.
//!
//! Models are tried in order. A model that fails before any part of its answer was shown is
//! followed by the next one, unless the request itself is at fault: a malformed or too long request
//! is not sent to all. The last failure is returned.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::{ModelRef, Piece, PieceSource, Provider, ProviderError, Request};
use futures_core::Stream;

/// A model and its provider.
#[derive(Clone)]
pub struct FallbackModel {
    /// The model; its name replaces the request's.
    pub model: ModelRef,
    /// The provider of the model.
    pub provider: Arc<dyn Provider>,
}

/// A provider that tries one model after the other.
#[derive(Clone)]
pub struct Fallback {
    choices: Arc<[FallbackModel]>,
}

impl Fallback {
    /// Tries `first`, then each of `others`.
    pub fn new(first: FallbackModel, others: impl IntoIterator<Item = FallbackModel>) -> Self {
        Self { choices: std::iter::once(first).chain(others).collect() }
    }
}

impl Provider for Fallback {
    fn open(&self, request: Request) -> PieceSource {
        Box::pin(FallbackSource {
            choices: Arc::clone(&self.choices),
            next: 0,
            request: Some(request),
            source: None,
        })
    }
}

struct FallbackSource {
    choices: Arc<[FallbackModel]>,
    next: usize,
    /// Kept for the next model; `None` after a part of an answer was shown.
    request: Option<Request>,
    source: Option<PieceSource>,
}

impl FallbackSource {
    /// Opens the next model, if there is one and none of the answer was shown.
    fn open_next(&mut self) -> bool {
        let (Some(choice), Some(request)) = (self.choices.get(self.next), &self.request) else {
            return false;
        };
        self.next += 1;
        let request = Request { model: choice.model.model().to_owned(), ..request.clone() };
        self.source = Some(choice.provider.open(request));
        true
    }
}

impl Stream for FallbackSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(source) = &mut self.source else {
                if self.next == 0 && self.open_next() {
                    continue;
                }
                return Poll::Ready(None);
            };
            let error = match ready!(source.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => {
                    if piece == Piece::Done {
                        self.source = None;
                    } else if piece.is_output() {
                        self.request = None;
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                Some(Err(error)) => error,
                None => ProviderError::Cut,
            };
            self.source = None;
            if !another_may_do_better(&error) || !self.open_next() {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

fn another_may_do_better(error: &ProviderError) -> bool {
    match error {
        ProviderError::InvalidRequest { .. } | ProviderError::ContextOverflow { .. } => false,
        ProviderError::Authentication { .. }
        | ProviderError::Permission { .. }
        | ProviderError::NotFound { .. }
        | ProviderError::RateLimited { .. }
        | ProviderError::Overloaded { .. }
        | ProviderError::Server { .. }
        | ProviderError::Connection { .. }
        | ProviderError::Timeout { .. }
        | ProviderError::Cut
        | ProviderError::Protocol { .. } => true,
    }
}
