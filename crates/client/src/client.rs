//! The connection to one server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::response;
use crate::socket_path::SocketPath;

/// How long a client waits for its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole response that is not a stream. Longer than the longest wait of a route.
    pub response: Duration,
    /// Between two bytes of a stream. Several times as long as between two heartbeats of the server.
    pub silence: Duration,
}

impl Default for Timeouts {
    /// 10 s for a connection, 75 s for a response, 60 s of silence.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: Duration::from_secs(75),
            silence: Duration::from_secs(60),
        }
    }
}

/// What a client needs to know of its server.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Where the server listens.
    pub endpoint: Endpoint,
    /// Token or API key. It does not print.
    pub token: SecretString,
    /// Limits of every wait.
    pub timeouts: Timeouts,
}

/// Why there is no client for a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Use `https`, or a server on this machine.
    #[error("the token would be sent in the clear: use an https address")]
    Insecure,
    /// Use a token that fits into a header.
    #[error("the token has characters that cannot be sent")]
    Token,
    /// The TLS configuration of this machine does not work.
    #[error("no connection can be made: {reason}")]
    Transport {
        /// What is wrong.
        reason: String,
    },
}

/// The client of one server. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    endpoint: Endpoint,
    authorization: HeaderValue,
    timeouts: Timeouts,
    http: reqwest::Client,
    /// Connections are made through it.
    _socket: Option<Arc<SocketPath>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.endpoint)
    }
}

impl Client {
    /// A client of this server. Nothing is sent yet.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        let ClientConfig { endpoint, token, timeouts } = config;
        if !endpoint.is_tls() && !endpoint.is_local() {
            return Err(ConfigError::Insecure);
        }
        let bearer = format!("Bearer {}", token.expose_secret());
        let mut authorization = HeaderValue::from_str(&bearer).map_err(|_| ConfigError::Token)?;
        // Prints as `Sensitive`.
        authorization.set_sensitive(true);
        let transport = |reason: String| ConfigError::Transport { reason };
        let socket = match &endpoint {
            Endpoint::Url(_) => None,
            Endpoint::Socket(path) => {
                Some(SocketPath::new(path).map_err(|error| transport(error.to_string()))?)
            }
        };
        let http = http_client(&endpoint, socket.as_ref(), timeouts)
            .map_err(|error| transport(error.to_string()))?;
        let socket = socket.map(Arc::new);
        Ok(Self { endpoint, authorization, timeouts, http, _socket: socket })
    }

    /// Where the server listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// A request without the token.
    pub(crate) fn open_request(&self, path: &[&str]) -> Result<RequestBuilder, ClientError> {
        let route = self.endpoint.route(path);
        Ok(self.http.get(route.ok_or_else(|| ClientError::protocol("the address has no path"))?))
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &[&str],
        query: Query,
    ) -> Result<RequestBuilder, ClientError> {
        let route = self.endpoint.route(path);
        let mut url = route.ok_or_else(|| ClientError::protocol("the address has no path"))?;
        if !query.0.is_empty() {
            url.query_pairs_mut().extend_pairs(query.0);
        }
        let request = self.http.request(method, url);
        Ok(request.header(AUTHORIZATION, self.authorization.clone()))
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: Query,
    ) -> Result<T, ClientError> {
        let response = self.send(self.request(Method::GET, path, query)?).await?;
        response::read(response).await
    }

    /// Sends a command without a body.
    pub(crate) async fn command<T: DeserializeOwned>(
        &self,
        path: &[&str],
    ) -> Result<T, ClientError> {
        let response = self.send(self.request(Method::POST, path, Query::NONE)?).await?;
        response::read(response).await
    }

    /// Sends a command without a body, under a key.
    pub(crate) async fn keyed_command<T: DeserializeOwned>(
        &self,
        path: &[&str],
        key: &str,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::POST, path, Query::NONE)?;
        response::read(self.send(request.header("idempotency-key", key)).await?).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::POST, path, Query::NONE)?;
        self.send_json(request, body, key).await
    }

    /// Sends a request with a JSON body.
    pub(crate) async fn send_json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| unsendable(&error))?;
        let mut request = request.header(CONTENT_TYPE, "application/json").body(body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        response::read(self.send(request).await?).await
    }

    /// The response to a request, if its status is a success.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let sent = request.timeout(self.timeouts.response).send().await;
        response::success(sent.map_err(|error| ClientError::unreachable(&error))?).await
    }
}

/// The pairs of a query string.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// The fields of a query type. Absent fields and `false` are left out, which is their default.
    pub(crate) fn of(query: &impl Serialize) -> Result<Self, ClientError> {
        let fields = serde_json::to_value(query).map_err(|error| unsendable(&error))?;
        let Value::Object(fields) = fields else { return Ok(Self::NONE) };
        let pairs = fields.into_iter().filter_map(|(name, value)| match value {
            Value::Null | Value::Bool(false) => None,
            Value::String(text) => Some((name, text)),
            Value::Bool(true) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Some((name, value.to_string()))
            }
        });
        Ok(Self(pairs.collect()))
    }
}

fn unsendable(error: &serde_json::Error) -> ClientError {
    ClientError::protocol(format!("the request cannot be written as JSON: {error}"))
}

fn http_client(
    endpoint: &Endpoint,
    socket: Option<&SocketPath>,
    timeouts: Timeouts,
) -> reqwest::Result<reqwest::Client> {
    // Fails when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder();
    if let Some(socket) = socket {
        builder = builder.unix_socket(socket.as_path());
    }
    builder = builder
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeouts.connect)
        // A redirect would carry the token to the server it names.
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true);
    if endpoint.is_local() {
        builder = builder.no_proxy();
    }
    if !endpoint.is_tls() {
        // Loading the certificates of the system takes long, and no connection needs one.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}
