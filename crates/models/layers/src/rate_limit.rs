//! Limits requests per minute, evenly spread, with a burst after a pause.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{PieceSource, Provider, Request};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::time::sleep;

use crate::delayed_source::Gated;

/// A provider with a limit of requests per minute.
#[derive(Clone)]
pub struct RateLimit<P> {
    inner: P,
    limiter: Arc<DefaultDirectRateLimiter>,
}

impl<P: Provider + Clone + Unpin + 'static> RateLimit<P> {
    /// Sends at most `requests` per minute to `inner`.
    pub fn per_minute(inner: P, requests: NonZeroU32) -> Self {
        Self { inner, limiter: Arc::new(RateLimiter::direct(Quota::per_minute(requests))) }
    }
}

impl<P: Provider + Clone + Unpin + 'static> Provider for RateLimit<P> {
    fn open(&self, request: Request) -> PieceSource {
        let limiter = Arc::clone(&self.limiter);
        let turn = async move {
            let clock = DefaultClock::default();
            while let Err(later) = limiter.check() {
                sleep(later.wait_time_from(clock.now())).await;
            }
        };
        Box::pin(Gated::new(self.inner.clone(), request, turn))
    }
}
