//! The HTTP client of the span collector. Distinguishes temporary from permanent refusals. An
//! invalid address or header is refused before anything is sent.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use secrecy::{ExposeSecret, SecretString};

const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Longest response body that is read, in bytes. Of a longer one only the status is used.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Most extra headers.
pub const HEADERS_MAX: usize = 32;

/// The OTLP path for spans.
const PATH: [&str; 2] = ["v1", "traces"];

/// Why an exporter cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExporterError {
    /// The endpoint is not `http://HOST:PORT` or `https://HOST`.
    #[error("`{endpoint}` is not the address of a collector: {reason}")]
    Endpoint {
        /// The refused address, without credentials.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Headers would be sent unencrypted to another machine.
    #[error("the headers would be sent unencrypted: use an https address")]
    Insecure,
    /// A header is not valid in HTTP.
    #[error("the header `{name}` cannot be sent: {reason}")]
    Header {
        /// Name of the header.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be created: {reason}")]
    Client {
        /// What the HTTP library reports.
        reason: String,
    },
}

#[derive(Clone)]
pub(crate) struct Collector {
    client: Client,
    url: Url,
}

/// Why the collector did not accept spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Temporarily: try again, after `wait` if it is given.
    Later { reason: String, wait: Option<Duration> },
    /// Permanently.
    Never { reason: String },
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector({})", self.url)
    }
}

impl Collector {
    pub(crate) fn new(
        endpoint: &str,
        headers: &[(String, SecretString)],
        timeout: Duration,
    ) -> Result<Self, ExporterError> {
        let url = address(endpoint)?;
        if url.scheme() == "http" && !headers.is_empty() && !is_loopback(&url) {
            return Err(ExporterError::Insecure);
        }
        // Fails when a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
            .default_headers(sensitive(headers)?)
            .connect_timeout(CONNECT_WAIT)
            .timeout(timeout)
            // A redirect would send the headers to another server.
            .redirect(redirect::Policy::none());
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            // Without TLS, loading the system's certificates is not necessary.
            builder = builder.tls_certs_only([]);
        }
        let client =
            builder.build().map_err(|error| ExporterError::Client { reason: error.to_string() })?;
        Ok(Self { client, url })
    }

    /// Sends spans. Returns how many of them the collector rejected.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<u64, Refusal> {
        let request = self.client.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let response = request.send().await.map_err(|error| {
            // The error contains the address, but nothing that was sent.
            Refusal::Later { reason: error.to_string(), wait: None }
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(rejected(response).await);
        }
        let reason = format!("it answered {status}");
        match status {
            // OTLP defines these as retryable.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(Refusal::Later { reason, wait: retry_after(response.headers()) })
            }
            _ => Err(Refusal::Never { reason }),
        }
    }
}

/// Number of rejected spans in a successful response.
async fn rejected(mut response: Response) -> u64 {
    let mut body = Vec::new();
    // An unreadable body counts as no rejection.
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return 0;
        }
        body.extend_from_slice(&chunk);
    }
    let answer = ExportTraceServiceResponse::decode(&*body).unwrap_or_default();
    let rejected = answer.partial_success.unwrap_or_default().rejected_spans;
    u64::try_from(rejected).unwrap_or_default()
}

/// Reads `retry-after` in seconds. A date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn address(endpoint: &str) -> Result<Url, ExporterError> {
    let wrong = |reason: &str| ExporterError::Endpoint {
        // The part before an `@` may be a password.
        endpoint: endpoint.rsplit('@').next().unwrap_or_default().to_owned(),
        reason: reason.to_owned(),
    };
    if endpoint.contains('@') {
        return Err(wrong("an address must not contain a user name or password: use a header"));
    }
    let mut url = Url::parse(endpoint.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("it is not an http or https address"));
    }
    if !url.path().trim_end_matches('/').ends_with("/v1/traces") {
        let mut path = url.path_segments_mut().map_err(|()| wrong("it cannot have a path"))?;
        path.pop_if_empty().extend(PATH);
    }
    Ok(url)
}

fn sensitive(headers: &[(String, SecretString)]) -> Result<HeaderMap, ExporterError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong =
            |reason: &str| ExporterError::Header { name: name.clone(), reason: reason.to_owned() };
        if map.len() >= HEADERS_MAX {
            return Err(wrong(&format!("there are more than {HEADERS_MAX}")));
        }
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("its name has strange characters in it"))?;
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| wrong("its value has strange characters in it"))?;
        // Printed as `Sensitive`.
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
