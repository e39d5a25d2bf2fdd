//! A [`ProviderError`] as it is recorded: each under its name, nothing rounded.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_core::port::TimeoutPhase;
use serde::{Deserialize, Serialize};

use antiphon_core::redaction::redact_keys;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FailureWire {
    InvalidRequest { message: String },
    ContextOverflow { message: String },
    Authentication { message: String },
    Permission { message: String },
    NotFound { message: String },
    RateLimited { message: String, retry_after: Option<Duration> },
    Overloaded { message: String, retry_after: Option<Duration> },
    Server { status: u16, message: String, retry_after: Option<Duration> },
    Connection { message: String },
    Timeout { phase: PhaseWire },
    Cut {},
    Protocol { message: String },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PhaseWire {
    Connect,
    FirstByte,
    Stall,
}

/// Without what looks like a key: some providers repeat it.
impl From<&ProviderError> for FailureWire {
    fn from(error: &ProviderError) -> Self {
        match error {
            ProviderError::InvalidRequest { message } => {
                Self::InvalidRequest { message: redact_keys(message) }
            }
            ProviderError::ContextOverflow { message } => {
                Self::ContextOverflow { message: redact_keys(message) }
            }
            ProviderError::Authentication { message } => {
                Self::Authentication { message: redact_keys(message) }
            }
            ProviderError::Permission { message } => {
                Self::Permission { message: redact_keys(message) }
            }
            ProviderError::NotFound { message } => Self::NotFound { message: redact_keys(message) },
            ProviderError::RateLimited { message, retry_after } => {
                Self::RateLimited { message: redact_keys(message), retry_after: *retry_after }
            }
            ProviderError::Overloaded { message, retry_after } => {
                Self::Overloaded { message: redact_keys(message), retry_after: *retry_after }
            }
            ProviderError::Server { status, message, retry_after } => Self::Server {
                status: *status,
                message: redact_keys(message),
                retry_after: *retry_after,
            },
            ProviderError::Connection { message } => {
                Self::Connection { message: redact_keys(message) }
            }
            ProviderError::Timeout { phase } => Self::Timeout {
                phase: match phase {
                    TimeoutPhase::Connect => PhaseWire::Connect,
                    TimeoutPhase::FirstByte => PhaseWire::FirstByte,
                    TimeoutPhase::Stall => PhaseWire::Stall,
                },
            },
            ProviderError::Cut => Self::Cut {},
            ProviderError::Protocol { message } => Self::Protocol { message: redact_keys(message) },
        }
    }
}

impl From<FailureWire> for ProviderError {
    fn from(wire: FailureWire) -> Self {
        match wire {
            FailureWire::InvalidRequest { message } => Self::InvalidRequest { message },
            FailureWire::ContextOverflow { message } => Self::ContextOverflow { message },
            FailureWire::Authentication { message } => Self::Authentication { message },
            FailureWire::Permission { message } => Self::Permission { message },
            FailureWire::NotFound { message } => Self::NotFound { message },
            FailureWire::RateLimited { message, retry_after } => {
                Self::RateLimited { message, retry_after }
            }
            FailureWire::Overloaded { message, retry_after } => {
                Self::Overloaded { message, retry_after }
            }
            FailureWire::Server { status, message, retry_after } => {
                Self::Server { status, message, retry_after }
            }
            FailureWire::Connection { message } => Self::Connection { message },
            FailureWire::Timeout { phase } => Self::Timeout {
                phase: match phase {
                    PhaseWire::Connect => TimeoutPhase::Connect,
                    PhaseWire::FirstByte => TimeoutPhase::FirstByte,
                    PhaseWire::Stall => TimeoutPhase::Stall,
                },
            },
            FailureWire::Cut {} => Self::Cut,
            FailureWire::Protocol { message } => Self::Protocol { message },
        }
    }
}
