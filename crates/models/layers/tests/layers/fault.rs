//! Every kind of provider error.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_core::port::TimeoutPhase;

fn message() -> String {
    "as told".to_owned()
}

pub(crate) fn rate_limited(retry_after: Option<Duration>) -> ProviderError {
    ProviderError::RateLimited { message: message(), retry_after }
}

pub(crate) fn overloaded(retry_after: Option<Duration>) -> ProviderError {
    ProviderError::Overloaded { message: message(), retry_after }
}

pub(crate) fn server(retry_after: Option<Duration>) -> ProviderError {
    ProviderError::Server { status: 500, message: message(), retry_after }
}

pub(crate) fn timeout(phase: TimeoutPhase) -> ProviderError {
    ProviderError::Timeout { phase }
}

pub(crate) fn invalid_request() -> ProviderError {
    ProviderError::InvalidRequest { message: message() }
}

pub(crate) fn context_overflow() -> ProviderError {
    ProviderError::ContextOverflow { message: message() }
}

/// Temporary errors.
pub(crate) fn transient() -> Vec<ProviderError> {
    vec![
        rate_limited(None),
        overloaded(None),
        server(None),
        ProviderError::Connection { message: message() },
        timeout(TimeoutPhase::Connect),
        timeout(TimeoutPhase::FirstByte),
        timeout(TimeoutPhase::Stall),
        ProviderError::Cut,
    ]
}

/// Permanent errors.
pub(crate) fn lasting() -> Vec<ProviderError> {
    vec![
        invalid_request(),
        context_overflow(),
        ProviderError::Authentication { message: message() },
        ProviderError::Permission { message: message() },
        ProviderError::NotFound { message: message() },
        ProviderError::Protocol { message: message() },
    ]
}
