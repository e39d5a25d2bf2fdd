//! Timeouts for silent providers.
//!
//! A provider that is silent for too long fails with [`ProviderError::Timeout`], and its stream is
//! dropped. Every sign of life counts, keep-alives included: a model may think for as long as its
//! server keeps the connection alive. Silence is measured only while the stream is polled: a slow
//! reader does not count against the provider.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use antiphon_core::port::TimeoutPhase;
use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep};

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutsConfig {
    /// From the request to the first sign of life.
    pub first_byte: Duration,
    /// From one sign of life to the next.
    pub stall: Duration,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(300), stall: Duration::from_secs(120) }
    }
}

/// A provider with timeouts.
#[derive(Debug, Clone)]
pub struct Timeouts<P> {
    inner: P,
    config: TimeoutsConfig,
}

impl<P: Provider> Timeouts<P> {
    /// Wraps `inner`.
    pub fn new(inner: P, config: TimeoutsConfig) -> Self {
        Self { inner, config }
    }
}

impl<P: Provider> Provider for Timeouts<P> {
    fn open(&self, request: Request) -> PieceSource {
        Box::pin(TimeoutSource {
            source: Some(self.inner.open(request)),
            config: self.config,
            phase: TimeoutPhase::FirstByte,
            waiting: None,
            alarm: None,
        })
    }
}

struct TimeoutSource {
    source: Option<PieceSource>,
    config: TimeoutsConfig,
    /// What is waited for.
    phase: TimeoutPhase,
    /// When the wait started; `None` while the stream is not polled.
    waiting: Option<Instant>,
    /// Fires at the earliest time at which the silence may be too long. It is not reset with every
    /// piece: when it fires too early, it is set again.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl TimeoutSource {
    fn piece_received(&mut self) {
        self.waiting = None;
        if self.phase != TimeoutPhase::Stall {
            self.phase = TimeoutPhase::Stall;
            // It was set for the first byte; the next deadline may be earlier.
            self.alarm = None;
        }
    }

    fn limit(&self) -> Duration {
        match self.phase {
            TimeoutPhase::Connect | TimeoutPhase::FirstByte => self.config.first_byte,
            TimeoutPhase::Stall => self.config.stall,
        }
    }
}

impl Stream for TimeoutSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(item) = source.as_mut().poll_next(cx) {
            this.piece_received();
            return Poll::Ready(item);
        }
        let limit = this.limit();
        let since = *this.waiting.get_or_insert_with(Instant::now);
        let alarm = this.alarm.get_or_insert_with(|| Box::pin(sleep(limit)));
        while alarm.as_mut().poll(cx).is_ready() {
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                this.source = None;
                let phase = this.phase;
                return Poll::Ready(Some(Err(ProviderError::Timeout { phase })));
            }
            alarm.set(sleep(left));
        }
        Poll::Pending
    }
}
