//! Retries failed requests.
//!
//! A request that failed for a temporary reason is sent again after a growing, jittered pause, or
//! after the pause that the provider asks for. Once a reader may have seen part of an answer, it is
//! never restarted: the failure is returned to the task, which asks again (`step/ask_model.rs` of the runtime).

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_core::Stream;
use tokio::time::{Sleep, sleep};

/// How often, and with which pauses, to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// Attempts after the first.
    pub retries_max: usize,
    /// Shortest pause. Each pause is twice the one before, plus up to as much again at random.
    pub pause_min: Duration,
    /// Longest own pause, jitter included.
    pub pause_max: Duration,
    /// Longest pause that a provider may ask for. When it asks for more, the failure is returned at
    /// once, so that another provider can be used.
    pub asked_pause_max: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            // Only what passes in a moment is retried here, out of sight. After that the task waits, where
            // people see it and a restart does not lose it.
            retries_max: 2,
            pause_min: Duration::from_millis(500),
            pause_max: Duration::from_secs(2),
            asked_pause_max: Duration::from_secs(2),
        }
    }
}

/// A provider that retries temporary failures.
#[derive(Debug, Clone)]
pub struct Retry<P> {
    inner: P,
    config: RetryConfig,
}

impl<P: Provider + Clone + Unpin + 'static> Retry<P> {
    /// Wraps `inner`.
    pub fn new(inner: P, config: RetryConfig) -> Self {
        Self { inner, config }
    }
}

impl<P: Provider + Clone + Unpin + 'static> Provider for Retry<P> {
    fn open(&self, request: Request) -> PieceSource {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(self.config.pause_min)
            // Jitter makes a pause up to twice as long.
            .with_max_delay(self.config.pause_min.max(self.config.pause_max / 2))
            .with_factor(2.0)
            .with_max_times(self.config.retries_max)
            .with_jitter()
            .build();
        let source = self.inner.open(request.clone());
        Box::pin(RetrySource {
            provider: self.inner.clone(),
            request: Some(request),
            config: self.config,
            pauses,
            state: State::Reading(source),
        })
    }
}

struct RetrySource<P> {
    provider: P,
    /// Kept for the next attempt; `None` after the last.
    request: Option<Request>,
    config: RetryConfig,
    pauses: ExponentialBackoff,
    state: State,
}

enum State {
    Reading(PieceSource),
    Pausing(Pin<Box<Sleep>>),
    Ended,
}

impl<P: Provider + Unpin> RetrySource<P> {
    /// The pause before the next attempt; `None` to give up.
    fn pause(&mut self, error: &ProviderError) -> Option<Duration> {
        if self.request.is_none() || !error.is_transient() {
            return None;
        }
        let pause = self.pauses.next()?;
        match error.retry_after() {
            Some(asked) if asked > self.config.asked_pause_max => None,
            Some(asked) if !asked.is_zero() => Some(asked),
            // A requested pause of zero counts as none requested.
            Some(_) | None => Some(pause.min(self.config.pause_max)),
        }
    }
}

impl<P: Provider + Unpin> Stream for RetrySource<P> {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let error = match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Pausing(pause) => {
                    ready!(pause.as_mut().poll(cx));
                    self.state = match self.request.clone() {
                        Some(request) => State::Reading(self.provider.open(request)),
                        None => State::Ended,
                    };
                    continue;
                }
                State::Reading(source) => match ready!(source.as_mut().poll_next(cx)) {
                    Some(Ok(piece)) => {
                        if piece == Piece::Done {
                            self.state = State::Ended;
                        } else if piece.is_output() {
                            self.request = None;
                        }
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    Some(Err(error)) => error,
                    None => ProviderError::Cut,
                },
            };
            match self.pause(&error) {
                Some(pause) => {
                    let seconds = pause.as_secs_f32();
                    tracing::warn!("{error}: retrying in {seconds:.1} s");
                    self.state = State::Pausing(Box::pin(sleep(pause)));
                }
                None => {
                    self.state = State::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}
