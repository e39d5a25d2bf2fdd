//! A connection to one server, from the handshake to the close.
//!
//! | file                | subject                                             |
//! |---------------------|-----------------------------------------------------|
//! | `client`            | capabilities, and answers to requests of the server |
//! | `call`              | one call, with its deadlines                        |
//! | `content`           | the result of a call, for the model                 |
//! | `traffic`           | pending calls and requests                          |
//! | `limited_transport` | limits around a transport                           |
//! | `rate_limiter`      | how fast messages are read                          |

pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod content;
pub(crate) mod limited_transport;
pub(crate) mod rate_limiter;
pub(crate) mod traffic;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{escaped, visible};
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError, Subscription,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::config::{Launch, ServerConfig, ServerName};
use crate::connection::call::http_cause;
use crate::connection::client::McpClient;
use crate::connection::limited_transport::LimitedTransport;
use crate::connection::traffic::Traffic;
use crate::oauth::Login;
use crate::server::process::{ProcessGroup, ServerProcess};
use crate::transport::http::{Http, HttpError};
use crate::transport::stdio::StdioTransport;

/// How long to wait for the last answers after the process has exited.
const LAST_ANSWERS_LIMIT: Duration = Duration::from_millis(500);

/// Time limit for closing the `rmcp` service.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Longest error message of a server that is reported, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// Settings shared by all connections.
pub(crate) struct ConnectionContext {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) workspace: Option<std::path::PathBuf>,
    /// The HTTP client, or why it could not be created.
    pub(crate) http: Result<Http, String>,
    /// Folder of the tokens of users who have logged in.
    pub(crate) token_folder: Option<std::path::PathBuf>,
}

/// The part of a connection that calls use.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) traffic: Arc<Traffic>,
    /// Absent for an HTTP server.
    pub(crate) group: Option<Arc<ProcessGroup>>,
}

/// A connection with the resources it owns. On drop, kills the server's process.
pub(crate) struct OpenConnection {
    pub(crate) connection: Arc<Connection>,
    service: RunningService<RoleClient, McpClient>,
    process: Option<ServerProcess>,
}

/// Which of the two protocols the client starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handshake {
    /// The newer protocol, then the older one if the server does not support it.
    Either,
    /// The older protocol only.
    Initialize,
}

impl Handshake {
    /// The handshake to try after this one failed.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Either => Self::Initialize,
            Self::Initialize => Self::Either,
        }
    }
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Another handshake would not help.
    Permanent(String),
    /// The server rejected the handshake.
    Refused(String),
}

impl OpenConnection {
    /// Starts or contacts a server and performs the handshake. The caller sets a time limit. If
    /// this future is dropped, the server's process is killed.
    pub(crate) async fn new(
        server: &ServerName,
        config: &ServerConfig,
        connection_context: &ConnectionContext,
        handshake: Handshake,
        started: impl FnOnce(Arc<ProcessGroup>),
    ) -> Result<Self, OpenError> {
        let traffic = Arc::new(Traffic::new(server.clone()));
        let workspace = connection_context.workspace.as_deref();
        match &config.launch {
            Launch::Stdio(stdio) => {
                let started_process =
                    ServerProcess::start(server, stdio, &connection_context.environment);
                let (process, input, output) = started_process.map_err(|error| {
                    let command = escaped(&stdio.command);
                    OpenError::Permanent(format!("`{command}` cannot be started: {error}"))
                })?;
                started(process.group());
                let transport = StdioTransport::new(input, output);
                Self::perform_handshake(transport, traffic, workspace, handshake, Some(process))
                    .await
            }
            Launch::Http(http) => {
                let tokens = connection_context.token_folder.as_deref();
                let login = tokens.map(|folder| Arc::new(Login::new(folder, server, &http.url)));
                let transport = connection_context
                    .http
                    .clone()
                    .and_then(|client| {
                        client.transport(server, http, &connection_context.environment, login)
                    })
                    .map_err(OpenError::Permanent)?;
                Self::perform_handshake(transport, traffic, workspace, handshake, None).await
            }
        }
    }

    async fn perform_handshake(
        transport: impl Transport<RoleClient> + 'static,
        traffic: Arc<Traffic>,
        workspace: Option<&Path>,
        handshake: Handshake,
        process: Option<ServerProcess>,
    ) -> Result<Self, OpenError> {
        let lifecycle = match handshake {
            Handshake::Either => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Handshake::Initialize => ClientLifecycleMode::Initialize,
        };
        let limited = LimitedTransport::new(transport, Arc::clone(&traffic));
        let client = McpClient::new(workspace);
        // Boxed: the future is large.
        match Box::pin(serve_client_with_lifecycle(client, limited, lifecycle)).await {
            Ok(service) => {
                let connection = Connection {
                    peer: service.peer().clone(),
                    traffic,
                    group: process.as_ref().map(ServerProcess::group),
                };
                Ok(Self { connection: Arc::new(connection), service, process })
            }
            Err(error) => {
                let reason = refusal(&error);
                let hopeless = matches!(
                    http_error(&error),
                    Some(
                        HttpError::Connect(_)
                            | HttpError::Unauthorized(_)
                            | HttpError::LoginRequired(_)
                            | HttpError::Moved(_)
                    )
                );
                let reason = match process {
                    Some(process) => format!("{reason}; it {}", process.stop().await),
                    None => reason,
                };
                Err(if hopeless {
                    OpenError::Permanent(reason)
                } else {
                    OpenError::Refused(reason)
                })
            }
        }
    }

    /// The handshake to use for this server at the next start.
    pub(crate) fn handshake(&self) -> Handshake {
        if self.is_stateless() { Handshake::Either } else { Handshake::Initialize }
    }

    fn is_stateless(&self) -> bool {
        let info = self.connection.peer.peer_info();
        info.is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Subscribes to changes of the tool list. Servers of the older protocol send them without a
    /// subscription.
    pub(crate) async fn listen(&self) -> Option<Subscription> {
        let info = self.connection.peer.peer_info()?;
        let tells =
            info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
        if !tells || !self.is_stateless() {
            return None;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let answer = self.connection.peer.listen(filter).await;
        answer.inspect_err(|error| tracing::debug!("no news of tools: {error}")).ok()
    }

    /// Waits until the server has disconnected or exited. Safe to cancel.
    pub(crate) async fn closed(&mut self) {
        let closed = &self.connection.traffic.closed;
        match &mut self.process {
            Some(process) => tokio::select! {
                () = closed.cancelled() => {}
                () = process.wait_for_exit() => {
                    // The last answers may still arrive.
                    let _ = timeout(LAST_ANSWERS_LIMIT, closed.cancelled()).await;
                }
            },
            None => closed.cancelled().await,
        }
    }

    /// Closes the connection and stops the server's process. Returns how the server ended.
    pub(crate) async fn close(mut self) -> String {
        self.connection.traffic.closed.cancel();
        // The result of the service does not matter any more.
        let _ = self.service.close_with_timeout(CLOSE_LIMIT).await;
        match self.process.take() {
            Some(process) => process.stop().await,
            None => "closed the connection".to_owned(),
        }
    }
}

/// The HTTP error that caused a failed handshake, if it is one.
fn http_error(error: &ClientInitializeError) -> Option<&HttpError> {
    if let ClientInitializeError::TransportError { error, .. } = error {
        return http_cause(error);
    }
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return http_error(fallback);
    }
    None
}

/// Describes why the handshake failed.
fn refusal(error: &ClientInitializeError) -> String {
    if let Some(cause) = http_error(error) {
        return cause.to_string();
    }
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return refusal(fallback);
    }
    if let ClientInitializeError::JsonRpcError(error) = error {
        return format!("it refused the connection: {}", message_text(&error.message));
    }
    if matches!(error, ClientInitializeError::NoCompatibleProtocolVersion { .. }) {
        return "it supports no protocol version that Antiphon supports".to_owned();
    }
    let closed = matches!(
        error,
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
    );
    let reason = if closed { "it closed the connection" } else { "it does not speak the protocol" };
    reason.to_owned()
}

/// Describes why the tools could not be listed.
pub(crate) fn list_failure(error: &ServiceError) -> String {
    if let ServiceError::McpError(error) = error {
        return format!("it refused to list its tools: {}", message_text(&error.message));
    }
    if let ServiceError::TransportSend(error) = error
        && let Some(cause) = http_cause(error)
    {
        return cause.to_string();
    }
    if matches!(error, ServiceError::TransportClosed) {
        return "it ended while it listed its tools".to_owned();
    }
    "its list of tools cannot be read".to_owned()
}

/// A message of the server, without hidden characters and shortened.
fn message_text(message: &str) -> String {
    visible(message).chars().take(MESSAGE_CHARS_MAX).collect()
}
