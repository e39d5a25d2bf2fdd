//! Another try.
//!
//! A request that failed for a reason that may pass is sent again, after a pause that grows and
//! is jittered, or after as long as the provider asks for. Once a reader may have seen something
//! of an answer it is never begun again: the failure is passed on.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_core::Stream;
use tokio::time::{Sleep, sleep};

/// How often and how patiently to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// Tries after the first.
    pub retries_max: usize,
    /// The shortest pause. Each is twice the one before, and up to as long again at random.
    pub pause_min: Duration,
    /// The longest pause of our own making, chance included.
    pub pause_max: Duration,
    /// The longest pause a provider may ask for. When it asks for more, the failure is passed
    /// on at once, so that somebody else can be asked.
    pub asked_pause_max: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            retries_max: 4,
            pause_min: Duration::from_millis(500),
            pause_max: Duration::from_secs(8),
            asked_pause_max: Duration::from_secs(60),
        }
    }
}

/// A provider that is asked again when it fails for a reason that may pass.
#[derive(Debug, Clone)]
pub struct Retry<P> {
    inner: P,
    config: RetryConfig,
}

impl<P: Provider + Clone + Unpin + 'static> Retry<P> {
    /// Asks `inner`, again if need be.
    pub fn new(inner: P, config: RetryConfig) -> Self {
        Self { inner, config }
    }
}

impl<P: Provider + Clone + Unpin + 'static> Provider for Retry<P> {
    fn open(&self, request: Request) -> PieceSource {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(self.config.pause_min)
            // Chance makes a pause up to twice as long.
            .with_max_delay(self.config.pause_min.max(self.config.pause_max / 2))
            .with_factor(2.0)
            .with_max_times(self.config.retries_max)
            .with_jitter()
            .build();
        let source = self.inner.open(request.clone());
        Box::pin(Retrying {
            provider: self.inner.clone(),
            request: Some(request),
            config: self.config,
            pauses,
            state: State::Reading(source),
        })
    }
}

struct Retrying<P> {
    provider: P,
    /// Kept for the next try; gone once there is none.
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

impl<P: Provider + Unpin> Retrying<P> {
    /// How long to wait before the next try; `None` to give up.
    fn pause(&mut self, error: &ProviderError) -> Option<Duration> {
        if self.request.is_none() || !error.is_transient() {
            return None;
        }
        let pause = self.pauses.next()?;
        match error.retry_after() {
            Some(asked) if asked > self.config.asked_pause_max => None,
            Some(asked) if !asked.is_zero() => Some(asked),
            // To be asked for no pause at all is to be asked for nothing.
            Some(_) | None => Some(pause.min(self.config.pause_max)),
        }
    }
}

impl<P: Provider + Unpin> Stream for Retrying<P> {
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
                    tracing::warn!("{error}: trying again in {seconds:.1} s");
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
