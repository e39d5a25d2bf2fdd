//! Limits concurrent answers. Further requests wait in order; a dropped one frees its slot.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::{PieceSource, Provider, Request};
use tokio::sync::Semaphore;

use crate::delayed_source::Gated;

/// A provider with a limit of concurrent answers.
#[derive(Debug, Clone)]
pub struct Concurrency<P> {
    inner: P,
    slots: Arc<Semaphore>,
}

impl<P: Provider + Clone + Unpin + 'static> Concurrency<P> {
    /// Allows `limit` concurrent answers of `inner`.
    pub fn new(inner: P, limit: NonZeroUsize) -> Self {
        let slots = limit.get().min(Semaphore::MAX_PERMITS);
        Self { inner, slots: Arc::new(Semaphore::new(slots)) }
    }
}

impl<P: Provider + Clone + Unpin + 'static> Provider for Concurrency<P> {
    fn open(&self, request: Request) -> PieceSource {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.slots).acquire_owned();
        Box::pin(Gated::new(self.inner.clone(), request, permit))
    }
}
