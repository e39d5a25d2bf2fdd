//! The address of a server.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use reqwest::Url;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An `http` or `https` URL. Paths of the API are appended to it.
    Url(Url),
    /// A Unix socket on this machine.
    Socket(PathBuf),
}

impl Endpoint {
    /// Reads `http://HOST:PORT` or `https://HOST`. The error says what is wrong, without the URL.
    pub fn parse(url: &str) -> Result<Self, String> {
        let url = url.trim();
        if url.contains('@') {
            return Err("an address must not hold a user name or password".to_owned());
        }
        if !url.contains("://") {
            let example = "`http://localhost:7117` or `https://team.example`";
            return Err(format!("add http:// or https:// to the address, such as {example}"));
        }
        let url = Url::parse(url).map_err(|error| format!("it is not an address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("it is not an http or https address".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("an address has no `?` and no `#`".to_owned());
        }
        Ok(Self::Url(url))
    }

    /// Whether requests stay on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Socket(_) => true,
            Self::Url(url) => {
                let host = url.host_str().unwrap_or_default();
                let literal = host.trim_start_matches('[').trim_end_matches(']');
                let is_loopback = |ip: IpAddr| ip.is_loopback();
                host == "localhost" || literal.parse().is_ok_and(is_loopback)
            }
        }
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Url(url) => url.scheme() == "https",
        }
    }

    /// URL of a route. A segment that holds `/` or `..` stays one segment.
    pub(crate) fn route(&self, path: &[&str]) -> Option<Url> {
        let mut url = match self {
            Self::Url(url) => url.clone(),
            Self::Socket(_) => Url::parse("http://localhost").ok()?,
        };
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url.as_str().trim_end_matches('/')),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}
