//! The version of the protocol that a connection speaks. The first `initialize` chooses it, and it stays.

use serde_json::Value;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The stable one.
    V1,
    /// A draft: only an editor that asks for exactly this one gets it.
    V2,
}

impl Version {
    /// What `initialize` with these parameters is answered with.
    pub(crate) fn negotiated(params: &Value) -> Self {
        match params.get("protocolVersion").and_then(Value::as_u64) {
            Some(2) => Self::V2,
            Some(_) | None => Self::V1,
        }
    }
}
