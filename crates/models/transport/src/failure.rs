//! Error responses, and connection errors.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_core::port::TimeoutPhase;
use chrono::{DateTime, Utc};
use reqwest::header::HeaderMap;

/// Most bytes of an error response that are read.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// Most characters of a provider's message that are shown.
const MESSAGE_CHARS_MAX: usize = 600;

/// An HTTP error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    /// HTTP status code.
    pub status: u16,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the provider recommends a retry; absent when it does not say.
    pub should_retry: Option<bool>,
    /// At most [`ERROR_BODY_BYTES_MAX`] of its body.
    pub body: String,
}

impl HttpFailure {
    pub(crate) fn new(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        Self {
            status,
            retry_after: retry_after(headers, Utc::now()),
            should_retry: header(headers, "x-should-retry").and_then(|text| text.parse().ok()),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }

    /// The error for the status code, with the provider's message if there is one. A dialect that
    /// knows more from the body checks that first.
    pub fn by_status(&self, words: Option<&str>) -> ProviderError {
        let message = self.message(words);
        let retry_after = self.retry_after;
        match self.status {
            200..=299 => ProviderError::Protocol { message },
            401 => ProviderError::Authentication { message },
            402 | 403 => ProviderError::Permission { message },
            404 => ProviderError::NotFound { message },
            413 => ProviderError::ContextOverflow { message },
            429 => ProviderError::RateLimited { message, retry_after },
            503 | 529 => ProviderError::Overloaded { message, retry_after },
            408 | 409 | 500.. => {
                ProviderError::Server { status: self.status, message, retry_after }
            }
            300..=399 => ProviderError::NotFound {
                message: format!("the address redirects (status {}): check base_url", self.status),
            },
            _ => ProviderError::InvalidRequest { message },
        }
    }

    /// An error in the middle of a stream, which has status 200.
    pub fn mid_stream() -> Self {
        Self { status: 200, retry_after: None, should_retry: None, body: String::new() }
    }

    /// `error`, changed to retryable or not if the provider says so explicitly.
    pub(crate) fn with_retry_advice(&self, error: ProviderError) -> ProviderError {
        match (self.should_retry, error.is_transient()) {
            (Some(true), false) => ProviderError::Server {
                status: self.status,
                message: error.into_message(),
                retry_after: self.retry_after,
            },
            (Some(false), true) if self.status == 429 => {
                ProviderError::Permission { message: error.into_message() }
            }
            (Some(false), true) => ProviderError::InvalidRequest { message: error.into_message() },
            (Some(_) | None, _) => error,
        }
    }

    /// The provider's message, or a general one.
    pub fn message(&self, words: Option<&str>) -> String {
        let body = self.body.trim();
        match words {
            Some(words) if !words.trim().is_empty() => shortened(words),
            _ if looks_like_html(body) => format!(
                "the address answered with a web page (status {}): check base_url and proxy",
                self.status
            ),
            _ if body.is_empty() => format!("status {} without a body", self.status),
            _ => format!("status {}: {}", self.status, shortened(body)),
        }
    }
}

/// A provider's text, shortened and without invisible characters.
fn shortened(text: &str) -> String {
    let text = antiphon_core::visible(text.trim());
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn looks_like_html(body: &str) -> bool {
    let starts_with =
        |tag: &str| body.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    starts_with("<!doctype") || starts_with("<html")
}

/// A connection error with its innermost cause.
pub(crate) fn connection(error: &reqwest::Error) -> ProviderError {
    if error.is_timeout() && error.is_connect() {
        return ProviderError::Timeout { phase: TimeoutPhase::Connect };
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let cause = cause.to_string();
    let host = match error.url().map(|url| (url.host_str(), url.port())) {
        Some((Some(host), Some(port))) => format!("{host}:{port}"),
        Some((Some(host), None)) => host.to_owned(),
        Some((None, _)) | None => "the provider".to_owned(),
    };
    // Lists cut long reasons: the advice says what the cause does.
    if cause.contains("refused") {
        let message = format!("{host}: nothing listens there; is the server running?");
        return ProviderError::Connection { message };
    }
    let advice = if cause.contains("certificate") || cause.contains("UnknownIssuer") {
        ": its certificate is not trusted; add its authority or check for a proxy"
    } else if cause.contains("dns") || cause.contains("lookup") {
        ": check the name in base_url and your network"
    } else {
        ""
    };
    ProviderError::Connection { message: format!("{host}: {cause}{advice}") }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Reads `retry-after-ms`, then `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let millis = header(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = header(headers, "retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    (date.to_utc() - now).to_std().ok()
}
