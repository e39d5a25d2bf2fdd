//! Parses the errors of both wires.
//!
//! OpenAI sends `{"error": {message, type, param, code}}`. Compatible servers also send `{"error":
//! "text"}`, `{"message": …}` or `{"detail": …}`, and any of them in a `data:` line after the
//! status was sent. `code` and `type` take precedence over the status.

use antiphon_core::ProviderError;
use antiphon_model_transport::HttpFailure;
use serde_json::Value;

/// Phrases for a conversation that is too long, of servers without a code for it. In lower case.
const OVERFLOW_PHRASES: [&str; 8] = [
    // OpenAI, vLLM, Mistral, LM Studio, OpenRouter, Ollama.
    "context length",
    // llama.cpp.
    "context size",
    "context window",
    "prompt is too long",
    // xAI.
    "maximum prompt length",
    // Google.
    "input token count",
    // Text Generation Inference.
    "`max_new_tokens` must be",
    // OpenAI and Groq, when one request exceeds the limit of a minute: waiting does not help.
    "request too large",
];

/// Parses an error response, or a document that came instead of a stream.
pub(crate) fn of_response(failure: &HttpFailure) -> ProviderError {
    let body: Option<Value> = serde_json::from_str(&failure.body).ok();
    match body.as_ref().and_then(ErrorReport::read) {
        Some(complaint) => complaint.judge(failure),
        None => failure.by_status(None),
    }
}

/// Parses an error in the middle of a stream.
pub(crate) fn in_stream(error: &Value) -> ProviderError {
    let failure = HttpFailure::mid_stream();
    match ErrorReport::read(error) {
        Some(complaint) => complaint.judge(&failure),
        None => ProviderError::Server {
            status: failure.status,
            message: "it broke off without saying why".to_owned(),
            retry_after: None,
        },
    }
}

/// An error as the server reports it.
struct ErrorReport {
    message: String,
    code: String,
    kind: String,
}

impl ErrorReport {
    /// `None` when it contains no text.
    fn read(body: &Value) -> Option<Self> {
        // Google's servers wrap it in a list.
        let body = body.get(0).unwrap_or(body);
        let inner = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
        let message =
            ["message", "error", "detail"].into_iter().find_map(|key| words_of(inner.get(key)?))?;
        let code = inner.get("code").map(|code| match code.as_str() {
            Some(text) => text.to_owned(),
            None => code.to_string(),
        });
        let kind = inner.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { message, code: code.unwrap_or_default(), kind })
    }

    /// The code, then the type.
    fn words(&self) -> impl Iterator<Item = &str> {
        [self.code.as_str(), self.kind.as_str()].into_iter()
    }

    fn judge(&self, failure: &HttpFailure) -> ProviderError {
        if let Some(known) = self.by_words(failure) {
            return known;
        }
        if failure.status != 200 {
            return failure.by_status(Some(&self.message));
        }
        // The status was sent before the error occurred. Many servers give it as the code.
        if let Ok(status @ 400..600) = self.code.parse() {
            return HttpFailure { status, ..failure.clone() }.by_status(Some(&self.message));
        }
        let message = failure.message(Some(&self.message));
        if self.words().any(|word| word.starts_with("invalid_")) {
            return ProviderError::InvalidRequest { message };
        }
        ProviderError::Server { status: failure.status, message, retry_after: None }
    }

    /// The error for the code or type, if it is more precise than the status.
    fn by_words(&self, failure: &HttpFailure) -> Option<ProviderError> {
        let message = failure.message(Some(&self.message));
        let retry_after = failure.retry_after;
        let lower = self.message.to_lowercase();
        if OVERFLOW_PHRASES.iter().any(|phrase| lower.contains(phrase)) {
            return Some(ProviderError::ContextOverflow { message });
        }
        self.words().find_map(|word| {
            let message = message.clone();
            match word {
                "context_length_exceeded" | "exceed_context_size_error" => {
                    Some(ProviderError::ContextOverflow { message })
                }
                "invalid_api_key" | "authentication_error" => {
                    Some(ProviderError::Authentication { message })
                }
                // Reported as a rate limit, but waiting does not help.
                "insufficient_quota"
                | "billing_not_active"
                | "billing_hard_limit_reached"
                | "permission_error" => Some(ProviderError::Permission { message }),
                "model_not_found" => Some(ProviderError::NotFound { message }),
                "rate_limit_exceeded" | "rate_limit_error" => {
                    Some(ProviderError::RateLimited { message, retry_after })
                }
                "server_is_overloaded" | "overloaded_error" | "slow_down" => {
                    Some(ProviderError::Overloaded { message, retry_after })
                }
                _ => None,
            }
        })
    }
}

/// The text in a value, or in the first list entry that has one.
fn words_of(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned()).filter(|text| !text.trim().is_empty());
    }
    if let Some(list) = value.as_array() {
        return list.iter().find_map(|fault| words_of(fault.get("msg")?));
    }
    value.get("detail").and_then(words_of)
}
