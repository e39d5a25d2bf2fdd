//! Errors that are reported as others.

use antiphon_core::port::{Piece, ProviderError};

use super::PieceFault;

/// The error as a faulty provider reports it.
pub(super) fn mistaken(fault: PieceFault, error: ProviderError) -> Result<Piece, ProviderError> {
    let taken_for_another = match &error {
        ProviderError::InvalidRequest { .. } => fault == PieceFault::MistakesInvalidRequests,
        ProviderError::ContextOverflow { .. } => fault == PieceFault::MistakesOverflow,
        ProviderError::Authentication { .. } => fault == PieceFault::MistakesAuthentication,
        ProviderError::Permission { .. } => fault == PieceFault::MistakesPermission,
        ProviderError::NotFound { .. } => fault == PieceFault::MistakesNotFound,
        ProviderError::Overloaded { .. } => fault == PieceFault::MistakesOverload,
        ProviderError::Server { .. } => fault == PieceFault::MistakesServerFaults,
        ProviderError::RateLimited { message, .. } if fault == PieceFault::ForgetsHowLongToWait => {
            let message = message.clone();
            return Err(ProviderError::RateLimited { message, retry_after: None });
        }
        ProviderError::Protocol { .. } if fault == PieceFault::SkipsGarbage => {
            return Ok(Piece::Done);
        }
        ProviderError::RateLimited { .. }
        | ProviderError::Connection { .. }
        | ProviderError::Timeout { .. }
        | ProviderError::Cut
        | ProviderError::Protocol { .. } => false,
    };
    if taken_for_another {
        return Err(ProviderError::Connection { message: error.to_string() });
    }
    Err(error)
}
