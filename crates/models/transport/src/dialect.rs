//! The wire format of one provider.

use antiphon_core::{Piece, ProviderError};

use crate::HttpFailure;

/// Parses one answer of a provider, event by event. Pure: no I/O, no clock.
pub trait Dialect: Send + Unpin + 'static {
    /// Parses one server-sent event and appends its pieces.
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError>;

    /// The body ended. A wire without a closing event may finish the answer here; by default, an
    /// answer without one was interrupted.
    fn end(&mut self, _pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Parses an error response.
    fn failure(&self, failure: &HttpFailure) -> ProviderError;
}
