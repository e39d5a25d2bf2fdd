//! The protocol over HTTP, with the HTTP client of the other crates: one TLS stack, one pool.
//!
//! `rmcp` handles sessions, resuming and restarts; this module adds limits. Answers have a maximum
//! size, redirects stay on the same host, keys never appear in logs, and requests have no `Origin`
//! because the client is not a browser.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{StreamableHttpClientTransport, WorkerTransport};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;

use crate::config::{HttpConfig, ServerName};
use crate::oauth::Login;
use crate::transport::sse::events;
use crate::transport::wire::{MESSAGE_BYTES_MAX, decode, encode};

/// Time limit for establishing a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Most redirects to follow, all on the same host.
const REDIRECTS_MAX: usize = 3;

/// Attempts to resume a broken event stream.
const RESUMES_MAX: usize = 5;

/// Messages queued in each direction. When a queue is full, the sender waits.
const WAITING_MAX: usize = 4;

/// Bytes of an error response that are read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Characters of an error response that are reported.
const ERROR_CHARS_MAX: usize = 200;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type Answer<T> = Result<T, StreamableHttpError<HttpError>>;

/// Why an HTTP request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The request was not sent.
    #[error("cannot be reached: {0}")]
    Connect(String),
    /// The request may have been sent; the outcome is unknown.
    #[error("stopped answering: {0}")]
    Broken(String),
    #[error("requires a key (HTTP {0}): set `bearer_token_env` or `headers` in its configuration")]
    Unauthorized(u16),
    /// The server asks for a login, and there is none, or it does not hold any longer.
    #[error("requires a login: run `antiphon mcp login {0}`")]
    LoginRequired(ServerName),
    #[error("points to another place (HTTP {0}): set its `url` to where it is now")]
    Moved(u16),
    #[error("answered with more than {MESSAGE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("answered with something that is not a protocol message, outcome unknown")]
    NotProtocol,
    #[error("answered with HTTP {0}{1}")]
    Status(u16, String),
}

/// One client for all servers.
#[derive(Debug, Clone)]
pub(crate) struct Http(Client);

/// HTTP client of one server, with the headers of every request.
#[derive(Clone)]
pub(crate) struct HttpServer {
    client: Client,
    name: ServerName,
    headers: HeaderMap,
    /// The login of the user, if the configuration has no key.
    login: Option<Arc<Login>>,
}

/// The protocol over HTTP.
pub(crate) type HttpTransport = WorkerTransport<
    rmcp::transport::streamable_http_client::StreamableHttpClientWorker<HttpServer>,
>;

impl Http {
    /// Creates a client for servers at these URLs.
    pub(crate) fn new<'a>(mut urls: impl Iterator<Item = &'a Url>) -> Result<Self, String> {
        // Fails if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder();
        if urls.all(|url| url.scheme() == "http") {
            // Loading the system's certificates is slow, and no URL needs them.
            builder = builder.tls_certs_only([]);
        }
        builder
            .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_LIMIT)
            .redirect(redirect::Policy::custom(redirect_policy))
            // Reusing an idle connection that was closed makes the outcome of a call unknown; failing to
            // open a new one means that the call was not sent.
            .pool_max_idle_per_host(0)
            .tcp_nodelay(true)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Creates the transport for a server. The error says which setting is missing or invalid.
    pub(crate) fn transport(
        &self,
        name: &ServerName,
        config: &HttpConfig,
        environment: &BTreeMap<String, String>,
        login: Option<Arc<Login>>,
    ) -> Result<HttpTransport, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let name: HeaderName = name.parse().map_err(|_| format!("`{name}` is not a header"))?;
            headers.insert(name, secret(value)?);
        }
        if let Some(variable) = &config.bearer_token_env {
            let token = environment.get(variable).map(|token| token.trim()).unwrap_or_default();
            if token.is_empty() {
                return Err(format!("its token is missing: set the variable `{variable}`"));
            }
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {token}").into())?);
        }
        let login = login.filter(|_| !headers.contains_key(AUTHORIZATION));
        let server = HttpServer { client: self.0.clone(), name: name.clone(), headers, login };
        let mut settings = StreamableHttpClientTransportConfig::with_uri(config.url.as_str());
        settings.retry_config = Arc::new(retry_policy());
        settings.max_sse_event_size = MESSAGE_BYTES_MAX;
        settings.channel_buffer_capacity = WAITING_MAX;
        Ok(StreamableHttpClientTransport::with_client(server, settings))
    }
}

fn retry_policy() -> impl rmcp::transport::common::client_side_sse::SseRetryPolicy {
    let mut policy = rmcp::transport::common::client_side_sse::ExponentialBackoff::default();
    policy.max_times = Some(RESUMES_MAX);
    policy
}

fn secret(value: &SecretString) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(value.expose_secret())
        .map_err(|_| "a header has a value that cannot be sent".to_owned())?;
    // Printed as `Sensitive`.
    value.set_sensitive(true);
    Ok(value)
}

/// Follows a redirect only on the same host, so that keys and sessions do not leak, and only if it
/// keeps the body.
fn redirect_policy(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_body =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let origin = |url: &Url| url.origin();
    let stays = attempt.previous().first().map(origin) == Some(attempt.url().origin());
    if keeps_body && stays && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

impl HttpServer {
    /// Sends a request. With a login that the server refuses, once more after it was renewed.
    async fn send(&self, request: RequestBuilder) -> Answer<Response> {
        let Some(login) = &self.login else { return send(request).await };
        let again = request.try_clone();
        let token = login.token().await;
        let response = send(authorized(request, token.as_deref())?).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        if let (Some(refused), Some(again)) = (token, again)
            && let Some(renewed) = login.renewed(&refused).await
        {
            let response = send(authorized(again, Some(&renewed))?).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
        }
        if asks_for_login(&response) {
            return Err(StreamableHttpError::Client(HttpError::LoginRequired(self.name.clone())));
        }
        Ok(response)
    }

    fn ready(
        &self,
        request: RequestBuilder,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let mut all = self.headers.clone();
        all.extend(headers);
        let request = request.headers(all);
        match session {
            Some(session) => request.header(SESSION_ID, session),
            None => request,
        }
    }
}

impl StreamableHttpClient for HttpServer {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<StreamableHttpPostResponse> {
        let request = self
            .client
            .post(uri.as_ref())
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .header(CONTENT_TYPE, JSON)
            .body(encode(&message)?);
        let response = self.send(self.ready(request, session.as_deref(), headers)).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return refused(response, &message, session.is_some()).await;
        }
        let session_id = response.headers().get(SESSION_ID);
        let session_id = session_id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        match content_type(&response).as_str() {
            EVENTS => {
                let events = events(response, request_id(&message));
                Ok(StreamableHttpPostResponse::Sse(events, session_id))
            }
            _ => match (decode(&body(response, MESSAGE_BYTES_MAX).await?), request_id(&message)) {
                (Ok(answer), _) => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
                // A notification needs no answer, and some servers send an invalid one.
                (Err(_), None) => Ok(StreamableHttpPostResponse::Accepted),
                (Err(_), Some(_)) => Err(StreamableHttpError::Client(HttpError::NotProtocol)),
            },
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<()> {
        let request = self.client.delete(uri.as_ref());
        // The answer does not matter: the server decides when its sessions end.
        self.send(self.ready(request, Some(session.as_ref()), headers)).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<BoxStream<'static, Result<Sse, SseError>>> {
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENTS);
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let response = self.send(self.ready(request, session.as_deref(), headers)).await?;
        match response.status() {
            StatusCode::OK if content_type(&response) == EVENTS => Ok(events(response, None)),
            // Only this error makes `rmcp` stop retrying.
            StatusCode::OK | StatusCode::METHOD_NOT_ALLOWED => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status => Err(failure(status, "")),
        }
    }
}

fn authorized(request: RequestBuilder, token: Option<&str>) -> Answer<RequestBuilder> {
    let Some(token) = token else { return Ok(request) };
    let header = secret(&format!("Bearer {token}").into());
    let header =
        header.map_err(|reason| StreamableHttpError::Client(HttpError::Connect(reason)))?;
    Ok(request.header(AUTHORIZATION, header))
}

/// Whether a refusal says where to log in, or how to authenticate: with a token.
fn asks_for_login(response: &Response) -> bool {
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let mut schemes = challenges.filter_map(|value| value.to_str().ok()?.split_whitespace().next());
    schemes.any(|scheme| scheme.eq_ignore_ascii_case("bearer"))
}

async fn send(request: RequestBuilder) -> Answer<Response> {
    request.send().await.map_err(|error| {
        let connecting = error.is_connect() || error.is_builder();
        let reason = root(&error.without_url());
        StreamableHttpError::Client(if connecting {
            HttpError::Connect(reason)
        } else {
            HttpError::Broken(reason)
        })
    })
}

/// The innermost error: the outer ones only say "error sending request".
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => None,
    }
}

async fn body(mut response: Response, bytes_max: usize) -> Answer<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let broken = |error: reqwest::Error| {
            StreamableHttpError::Client(HttpError::Broken(root(&error.without_url())))
        };
        let Some(chunk) = response.chunk().await.map_err(broken)? else {
            return Ok(body);
        };
        if body.len() + chunk.len() > bytes_max {
            return Err(StreamableHttpError::Client(HttpError::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
}

/// Converts an error response to a protocol error or an HTTP error.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Answer<StreamableHttpPostResponse> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let read = body(response, ERROR_BYTES_MAX).await.unwrap_or_default();
    let error = match decode(&read) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        Ok(_) | Err(_) => None,
    };
    // Many servers copied from one example answer an unknown session with 400, not 404.
    let forgot =
        |error: &rmcp::model::JsonRpcError| error.error.message.to_lowercase().contains("session");
    if status == StatusCode::BAD_REQUEST && in_session && error.as_ref().is_some_and(forgot) {
        return Err(StreamableHttpError::SessionExpired);
    }
    let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let (false, true, Some(id)) = (unauthorized, status.is_client_error(), request_id(message)) {
        // Servers without `server/discover` reject it in many ways. Their error may have no request
        // id, so it gets the id of the request that caused it.
        let is_probe = matches!(message, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)));
        let reason = match error {
            Some(error) => Some(error.error),
            None if is_probe => Some(ErrorData::invalid_request(format!("HTTP {status}"), None)),
            None => None,
        };
        if let Some(reason) = reason {
            let answer = ServerJsonRpcMessage::error(reason, Some(id));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    Err(failure(status, &String::from_utf8_lossy(&read)))
}

fn failure(status: StatusCode, message_text: &str) -> StreamableHttpError<HttpError> {
    let code = status.as_u16();
    StreamableHttpError::Client(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => HttpError::Unauthorized(code),
        _ if status.is_redirection() => HttpError::Moved(code),
        StatusCode::TOO_MANY_REQUESTS => return HttpStatusError::new(code, None).into(),
        _ => {
            let line: String =
                antiphon_core::visible(message_text).chars().take(ERROR_CHARS_MAX).collect();
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            HttpError::Status(code, if line.is_empty() { line } else { format!(": {line}") })
        }
    })
}
