//! The address of a provider, and one request to it.

use std::fmt;

use antiphon_core::redaction::Secrets;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::request_body::RequestBody;

/// The base address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Why a text is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("`{found}` is not a URL: {reason}")]
    Url {
        /// The refused text.
        found: String,
        /// What the URL parser reports.
        reason: String,
    },
    /// Neither `http` nor `https`.
    #[error("`{found}` is not an http or https address")]
    Scheme {
        /// The refused text.
        found: String,
    },
    /// The address contains credentials. Keys are configured separately and never printed.
    #[error("an address must not contain a user name or password: set the key instead")]
    Userinfo,
}

impl Endpoint {
    /// Parses the base address of a provider, such as `https://api.example.com/v1`.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        // Checked first, because the other errors repeat the text.
        if text.contains('@') {
            return Err(EndpointError::Userinfo);
        }
        let url = Url::parse(text.trim()).map_err(|error| EndpointError::Url {
            found: text.to_owned(),
            reason: error.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointError::Scheme { found: text.to_owned() });
        }
        Ok(Self(url))
    }

    /// The address of `path` below this one.
    pub fn at(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        Self(url)
    }

    /// The same address with a query parameter.
    pub fn with_query(&self, name: &str, value: &str) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().append_pair(name, value);
        Self(url)
    }

    /// The host name, in lower case.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A POST request with a JSON body.
pub struct Post {
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: HeaderMap,
    pub(crate) body: RequestBody,
    /// Keys to redact from responses.
    pub(crate) secrets: Secrets,
}

impl Post {
    /// A request with this JSON body.
    pub fn json(endpoint: Endpoint, body: impl Into<RequestBody>) -> Self {
        let body = body.into();
        Self { endpoint, headers: HeaderMap::new(), body, secrets: Secrets::default() }
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Adds a key as a header. A key that is not valid in a header is omitted, so that the provider
    /// reports it as missing.
    pub fn secret(mut self, name: &'static str, prefix: &str, value: &SecretString) -> Self {
        let key = value.expose_secret().trim();
        self.secrets.add(value);
        let text = format!("{prefix}{key}");
        if let Ok(mut value) = HeaderValue::from_str(&text) {
            value.set_sensitive(true);
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }
}

/// Prints only the size of the body, which contains the conversation.
impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("endpoint", &format_args!("{}", self.endpoint))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
