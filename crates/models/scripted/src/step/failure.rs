//! The `error` of a step: every [`ProviderError`], under its name in `snake_case` and with its
//! fields. Other names and fields are refused.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_core::port::TimeoutPhase;
use serde::Deserialize;

/// A scripted failure.
#[derive(Debug, Deserialize)]
#[serde(from = "FailureWire")]
pub(super) struct Failure(pub(super) ProviderError);

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FailureWire {
    InvalidRequest {
        #[serde(default = "message")]
        message: String,
    },
    ContextOverflow {
        #[serde(default = "message")]
        message: String,
    },
    Authentication {
        #[serde(default = "message")]
        message: String,
    },
    Permission {
        #[serde(default = "message")]
        message: String,
    },
    NotFound {
        #[serde(default = "message")]
        message: String,
    },
    RateLimited {
        #[serde(default = "message")]
        message: String,
        retry_after_ms: Option<u64>,
    },
    Overloaded {
        #[serde(default = "message")]
        message: String,
        retry_after_ms: Option<u64>,
    },
    Server {
        #[serde(default = "status")]
        status: u16,
        #[serde(default = "message")]
        message: String,
        retry_after_ms: Option<u64>,
    },
    Connection {
        #[serde(default = "message")]
        message: String,
    },
    Timeout {
        phase: PhaseWire,
    },
    // With braces, or `serde` would accept other fields.
    Cut {},
    Protocol {
        #[serde(default = "message")]
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PhaseWire {
    Connect,
    FirstByte,
    Stall,
}

fn message() -> String {
    "scripted failure".to_owned()
}

fn status() -> u16 {
    500
}

impl From<FailureWire> for Failure {
    fn from(wire: FailureWire) -> Self {
        let wait = |ms: Option<u64>| ms.map(Duration::from_millis);
        Self(match wire {
            FailureWire::InvalidRequest { message } => ProviderError::InvalidRequest { message },
            FailureWire::ContextOverflow { message } => ProviderError::ContextOverflow { message },
            FailureWire::Authentication { message } => ProviderError::Authentication { message },
            FailureWire::Permission { message } => ProviderError::Permission { message },
            FailureWire::NotFound { message } => ProviderError::NotFound { message },
            FailureWire::RateLimited { message, retry_after_ms } => {
                ProviderError::RateLimited { message, retry_after: wait(retry_after_ms) }
            }
            FailureWire::Overloaded { message, retry_after_ms } => {
                ProviderError::Overloaded { message, retry_after: wait(retry_after_ms) }
            }
            FailureWire::Server { status, message, retry_after_ms } => {
                ProviderError::Server { status, message, retry_after: wait(retry_after_ms) }
            }
            FailureWire::Connection { message } => ProviderError::Connection { message },
            FailureWire::Timeout { phase } => ProviderError::Timeout {
                phase: match phase {
                    PhaseWire::Connect => TimeoutPhase::Connect,
                    PhaseWire::FirstByte => TimeoutPhase::FirstByte,
                    PhaseWire::Stall => TimeoutPhase::Stall,
                },
            },
            FailureWire::Cut {} => ProviderError::Cut,
            FailureWire::Protocol { message } => ProviderError::Protocol { message },
        })
    }
}
