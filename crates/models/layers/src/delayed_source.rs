//! A source that opens when a future is ready.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_core::Stream;
use futures_core::future::BoxFuture;

/// Waits for `gate`, then opens. The gate's output is kept until the source is dropped.
pub(crate) struct Gated<P, G> {
    gate: Option<BoxFuture<'static, G>>,
    pass: Option<G>,
    waiting: Option<(P, Request)>,
    source: Option<PieceSource>,
}

impl<P, G> Gated<P, G> {
    pub(crate) fn new(
        provider: P,
        request: Request,
        gate: impl Future<Output = G> + Send + 'static,
    ) -> Self {
        Self {
            gate: Some(Box::pin(gate)),
            pass: None,
            waiting: Some((provider, request)),
            source: None,
        }
    }
}

impl<P: Provider + Unpin, G: Unpin> Stream for Gated<P, G> {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(gate) = &mut this.gate {
            this.pass = Some(ready!(gate.as_mut().poll(cx)));
            this.gate = None;
        }
        if let Some((provider, request)) = this.waiting.take() {
            this.source = Some(provider.open(request));
        }
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        let item = ready!(source.as_mut().poll_next(cx));
        if item.is_none() {
            this.source = None;
            this.pass = None;
        }
        Poll::Ready(item)
    }
}
