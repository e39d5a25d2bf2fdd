//! What one provider's wire means.

use antiphon_core::{Piece, ProviderError};

use crate::HttpFailure;

/// One answer of one provider, read event by event. Pure: no I/O, no clock.
pub trait Dialect: Send + Unpin + 'static {
    /// Reads one server-sent event and appends what it says.
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError>;

    /// The body ended. A wire that has no closing event may finish the answer here; by default
    /// an answer that did not say it is done was cut off.
    fn end(&mut self, _pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Reads an error response.
    fn failure(&self, failure: &HttpFailure) -> ProviderError;
}
