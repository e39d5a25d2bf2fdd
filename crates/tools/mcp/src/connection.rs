//! A conversation with one server, from the first word.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::visible;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError, Subscription,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::call::http_cause;
use crate::client::McpClient;
use crate::config::{Launch, ServerConfig, ServerName};
use crate::guard::Guard;
use crate::http::{Http, HttpError};
use crate::process::{ProcessGroup, ServerProcess};
use crate::stdio::StdioTransport;
use crate::traffic::Traffic;

/// How long the last answers of a server that has ended are waited for.
const LAST_ANSWERS_LIMIT: Duration = Duration::from_millis(500);

/// How long the protocol's machinery may take to end.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Longest message of a server that is repeated, in characters.
const SAID_CHARS_MAX: usize = 200;

/// What all connections are made with.
pub(crate) struct Surroundings {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) workspace: Option<std::path::PathBuf>,
    /// An error is why there is no HTTP.
    pub(crate) http: Result<Http, String>,
}

/// What calls need of a connection.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) traffic: Arc<Traffic>,
    /// Absent for a server at an address.
    pub(crate) group: Option<Arc<ProcessGroup>>,
}

/// A connection together with what keeps it up. Dropped, the server's process is killed.
pub(crate) struct Open {
    pub(crate) connection: Arc<Connection>,
    service: RunningService<RoleClient, McpClient>,
    process: Option<ServerProcess>,
}

/// Which of the two protocols a server is greeted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Greeting {
    /// The newer one, and the older one if the server does not know it.
    Either,
    /// The older one alone.
    Initialize,
}

impl Greeting {
    /// The one to try when this one is not taken.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Either => Self::Initialize,
            Self::Initialize => Self::Either,
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Another greeting would not help.
    Hopeless(String),
    /// The server did not take the greeting.
    Refused(String),
}

impl Open {
    /// Starts or calls a server and greets it. Whoever calls this sets a time limit; canceled, the
    /// server's process is killed.
    pub(crate) async fn new(
        server: &ServerName,
        config: &ServerConfig,
        surroundings: &Surroundings,
        greeting: Greeting,
        started: impl FnOnce(Arc<ProcessGroup>),
    ) -> Result<Self, OpenError> {
        let traffic = Arc::new(Traffic::new(server.clone()));
        let workspace = surroundings.workspace.as_deref();
        match &config.launch {
            Launch::Stdio(stdio) => {
                let started_process =
                    ServerProcess::start(server, stdio, &surroundings.environment);
                let (process, input, output) = started_process.map_err(|error| {
                    OpenError::Hopeless(format!("`{}` cannot be started: {error}", stdio.command))
                })?;
                started(process.group());
                let transport = StdioTransport::new(input, output);
                Self::greet(transport, traffic, workspace, greeting, Some(process)).await
            }
            Launch::Http(http) => {
                let transport = surroundings
                    .http
                    .clone()
                    .and_then(|client| client.transport(http, &surroundings.environment))
                    .map_err(OpenError::Hopeless)?;
                Self::greet(transport, traffic, workspace, greeting, None).await
            }
        }
    }

    async fn greet(
        transport: impl Transport<RoleClient> + 'static,
        traffic: Arc<Traffic>,
        workspace: Option<&Path>,
        greeting: Greeting,
        process: Option<ServerProcess>,
    ) -> Result<Self, OpenError> {
        let lifecycle = match greeting {
            Greeting::Either => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Greeting::Initialize => ClientLifecycleMode::Initialize,
        };
        let guard = Guard::new(transport, Arc::clone(&traffic));
        let client = McpClient::new(workspace);
        // Boxed: it is large, and waits in many places.
        match Box::pin(serve_client_with_lifecycle(client, guard, lifecycle)).await {
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
                    Some(HttpError::Connect(_) | HttpError::Unauthorized(_) | HttpError::Moved(_))
                );
                let reason = match process {
                    Some(process) => format!("{reason}; it {}", process.leave().await),
                    None => reason,
                };
                Err(if hopeless { OpenError::Hopeless(reason) } else { OpenError::Refused(reason) })
            }
        }
    }

    /// Which greeting to use for this server the next time.
    pub(crate) fn greeting(&self) -> Greeting {
        if self.is_stateless() { Greeting::Either } else { Greeting::Initialize }
    }

    fn is_stateless(&self) -> bool {
        let info = self.connection.peer.peer_info();
        info.is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Asks a server of the newer protocol to say when its tools change; others do so unasked.
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

    /// Waits until the server is no longer there. Safe to cancel.
    pub(crate) async fn gone(&mut self) {
        let gone = &self.connection.traffic.gone;
        match &mut self.process {
            Some(process) => tokio::select! {
                () = gone.cancelled() => {}
                () = process.ended() => {
                    // Its last answers may still be on their way.
                    let _ = timeout(LAST_ANSWERS_LIMIT, gone.cancelled()).await;
                }
            },
            None => gone.cancelled().await,
        }
    }

    /// Says goodbye and ends the server's process. Says how it ended.
    pub(crate) async fn close(mut self) -> String {
        self.connection.traffic.gone.cancel();
        // What its tasks come to is of no interest any more.
        let _ = self.service.close_with_timeout(CLOSE_LIMIT).await;
        match self.process.take() {
            Some(process) => process.leave().await,
            None => "closed the connection".to_owned(),
        }
    }
}

/// What is behind an error of a transport over HTTP.
fn http_error(error: &ClientInitializeError) -> Option<&HttpError> {
    if let ClientInitializeError::TransportError { error, .. } = error {
        return http_cause(error);
    }
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return http_error(fallback);
    }
    None
}

/// Why a greeting was not taken.
fn refusal(error: &ClientInitializeError) -> String {
    if let Some(cause) = http_error(error) {
        return cause.to_string();
    }
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return refusal(fallback);
    }
    if let ClientInitializeError::JsonRpcError(error) = error {
        return format!("it refused the connection: {}", said(&error.message));
    }
    if matches!(error, ClientInitializeError::NoCompatibleProtocolVersion { .. }) {
        return "it speaks no version of the protocol that is known here".to_owned();
    }
    let closed = matches!(
        error,
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
    );
    let reason = if closed { "it closed the connection" } else { "it does not speak the protocol" };
    reason.to_owned()
}

/// Why a list could not be had.
pub(crate) fn list_failure(error: &ServiceError) -> String {
    if let ServiceError::McpError(error) = error {
        return format!("it would not list its tools: {}", said(&error.message));
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

/// The words of a server, as far as they are repeated.
fn said(message: &str) -> String {
    visible(message).chars().take(SAID_CHARS_MAX).collect()
}
