//! An end to waiting.
//!
//! A provider that says nothing for too long fails with [`ProviderError::Timeout`] and is let go.
//! Whatever it says counts, also that it is merely alive: a model may think for as long as its
//! server keeps the connection warm. Silence is measured while somebody waits for it to end: a
//! reader that takes its time is not held against the provider.

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

/// A provider that does not keep anybody waiting for ever.
#[derive(Debug, Clone)]
pub struct Timeouts<P> {
    inner: P,
    config: TimeoutsConfig,
}

impl<P: Provider> Timeouts<P> {
    /// Puts an end to the silences of `inner`.
    pub fn new(inner: P, config: TimeoutsConfig) -> Self {
        Self { inner, config }
    }
}

impl<P: Provider> Provider for Timeouts<P> {
    fn open(&self, request: Request) -> PieceSource {
        Box::pin(Timed {
            source: Some(self.inner.open(request)),
            config: self.config,
            phase: TimeoutPhase::FirstByte,
            waiting: None,
            alarm: None,
        })
    }
}

struct Timed {
    source: Option<PieceSource>,
    config: TimeoutsConfig,
    /// What is waited for.
    phase: TimeoutPhase,
    /// Since when.
    waiting: Option<Instant>,
    /// Rings at the earliest moment at which the silence may be too long. It is not moved with
    /// every piece: when it rings too early it is set anew.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    fn heard(&mut self) {
        self.waiting = None;
        if self.phase != TimeoutPhase::Stall {
            self.phase = TimeoutPhase::Stall;
            // It was set for the first byte, and the next one may be due earlier.
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

impl Stream for Timed {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(item) = source.as_mut().poll_next(cx) {
            this.heard();
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
