//! Parses errors: `{"error": {…}}`, or an array of one such object.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_transport::HttpFailure;
use serde::Deserialize;

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorIn,
}

#[derive(Deserialize)]
pub(crate) struct ErrorIn {
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    details: Vec<DetailIn>,
}

/// One of several kinds: `ErrorInfo` has a reason, `RetryInfo` a delay.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetailIn {
    reason: Option<String>,
    retry_delay: Option<String>,
}

/// Parses an error response.
pub(crate) fn in_place_of_an_answer(failure: &HttpFailure) -> ProviderError {
    let body = failure.body.trim();
    let body = body.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(body);
    match serde_json::from_str::<ErrorBody>(body) {
        Ok(body) => provider_error(&body.error, failure),
        Err(_) => failure.by_status(None),
    }
}

/// Parses an error event in the middle of a stream.
pub(crate) fn in_mid_stream(error: &ErrorIn) -> ProviderError {
    provider_error(error, &HttpFailure::mid_stream())
}

/// The status word is more precise than the code, which is 200 in the middle of a stream.
fn provider_error(error: &ErrorIn, failure: &HttpFailure) -> ProviderError {
    let message = failure.message(Some(&error.message));
    let retry_after = error.retry_delay().or(failure.retry_after);
    let status = failure.status;
    match error.status.as_str() {
        // The wire reports a wrong key as an invalid argument, and a missing key as a missing
        // permission.
        _ if error.has_reason("API_KEY_INVALID") => ProviderError::Authentication { message },
        "PERMISSION_DENIED" if message.contains("unregistered callers") => {
            ProviderError::Authentication { message }
        }
        "UNAUTHENTICATED" => ProviderError::Authentication { message },
        // An unsupported country, or an account without billing.
        "PERMISSION_DENIED" | "FAILED_PRECONDITION" => ProviderError::Permission { message },
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" | "INTERNAL" if is_overflow(&message) => {
            ProviderError::ContextOverflow { message }
        }
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" => ProviderError::InvalidRequest { message },
        "NOT_FOUND" => ProviderError::NotFound { message },
        "RESOURCE_EXHAUSTED" => ProviderError::RateLimited { message, retry_after },
        "UNAVAILABLE" => ProviderError::Overloaded { message, retry_after },
        "INTERNAL" | "DEADLINE_EXCEEDED" | "UNKNOWN" | "ABORTED" | "CANCELLED" => {
            ProviderError::Server { status, message, retry_after }
        }
        _ if status == 200 => ProviderError::Server { status, message, retry_after },
        _ => failure.by_status(Some(&error.message)),
    }
}

impl ErrorIn {
    fn has_reason(&self, reason: &str) -> bool {
        self.details.iter().any(|detail| detail.reason.as_deref() == Some(reason))
    }

    /// A duration such as `"34.07s"`, the JSON form of protocol buffers.
    fn retry_delay(&self) -> Option<Duration> {
        let text = self.details.iter().find_map(|detail| detail.retry_delay.as_deref())?;
        Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
    }
}

fn is_overflow(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("exceeds the maximum number of tokens")
        || message.contains("input context is too long")
        || message.contains("request payload size exceeds the limit")
}
