//! Events of a provider that do not follow its protocol.

use antiphon_core::ProviderError;

/// An event that cannot be parsed.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub fn malformed_event(error: serde_json::Error) -> ProviderError {
    ProviderError::Protocol { message: format!("an event is not what it should be: {error}") }
}

/// An event without a field that it needs.
pub fn missing_field(field: &str) -> ProviderError {
    ProviderError::Protocol { message: format!("an event has no `{field}`") }
}
