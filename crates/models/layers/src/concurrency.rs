//! At most so many answers at a time. Those above the limit wait in line; one that is dropped
//! gives its place to the next.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::{PieceSource, Provider, Request};
use tokio::sync::Semaphore;

use crate::gated::Gated;

/// A provider that answers at most so many at a time.
#[derive(Debug, Clone)]
pub struct Concurrency<P> {
    inner: P,
    places: Arc<Semaphore>,
}

impl<P: Provider + Clone + Unpin + 'static> Concurrency<P> {
    /// Lets `limit` answers of `inner` run at a time.
    pub fn new(inner: P, limit: NonZeroUsize) -> Self {
        let places = limit.get().min(Semaphore::MAX_PERMITS);
        Self { inner, places: Arc::new(Semaphore::new(places)) }
    }
}

impl<P: Provider + Clone + Unpin + 'static> Provider for Concurrency<P> {
    fn open(&self, request: Request) -> PieceSource {
        // Never closed, so there is always a permit in the end.
        let permit = Arc::clone(&self.places).acquire_owned();
        Box::pin(Gated::new(self.inner.clone(), request, permit))
    }
}
