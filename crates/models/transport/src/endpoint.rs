//! Where a provider is, and one request to it.

use std::fmt;

use antiphon_core::redaction::Secrets;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// The address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("`{found}` is not a URL: {reason}")]
    Url {
        /// The text.
        found: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Not HTTP.
    #[error("`{found}` is not an http or https address")]
    Scheme {
        /// The text.
        found: String,
    },
    /// Keys have their own place, which is never printed.
    #[error("an address must not hold a user name or password: set the key instead")]
    Userinfo,
}

impl Endpoint {
    /// Reads the base address of a provider, `https://api.example.com/v1` for instance.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        // Before anything is repeated to anybody.
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

    /// The same address with a query.
    pub fn with_query(&self, name: &str, value: &str) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().append_pair(name, value);
        Self(url)
    }

    /// The name of the machine, in lower case.
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

/// One request: JSON to an address.
pub struct Post {
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Values that are removed from answers and errors.
    pub(crate) secrets: Secrets,
}

impl Post {
    /// Sends `body`, which is JSON.
    pub fn json(endpoint: Endpoint, body: Vec<u8>) -> Self {
        Self { endpoint, headers: HeaderMap::new(), body, secrets: Secrets::default() }
    }

    /// With a header.
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// With a key. One that no header can carry is left out, so the provider says that it is
    /// missing.
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

/// The body is what somebody told a model: only its size is shown.
impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("endpoint", &format_args!("{}", self.endpoint))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
