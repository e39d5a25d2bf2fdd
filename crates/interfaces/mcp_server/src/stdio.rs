//! MCP on standard input and output: one client, for as long as its input is open.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::{fmt, io};

use antiphon_core::{AgentName, ModelRef};
use antiphon_interface_transport::Interface;
use antiphon_permissions::PermissionMode;
use antiphon_process::Participant;
use antiphon_project::environment::{Environment, Questions};
use antiphon_project::error::ProjectError;
use antiphon_project::project::Project;
use rmcp::RoleServer;
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::TransportAdapterIdentity;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, ProcessBackend};
use crate::handler::McpHandler;

/// Longest message, in bytes. A longer one is dropped, and the connection goes on.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What the server of a client is started with.
pub struct StdioConfig {
    /// What the process was started with.
    pub environment: Environment,
    /// What other processes get on the project's socket while this one owns the journal.
    pub interface: fn() -> Interface,
    /// Agents that are offered; all when empty.
    pub agents: Vec<AgentName>,
    /// The model of the tasks; the agent's or the configured one when absent.
    pub model: Option<ModelRef>,
    /// Permission mode of the tasks; the configured one when absent.
    pub mode: Option<PermissionMode>,
}

/// Why a client was not served.
#[derive(Debug)]
pub enum StdioError {
    /// The project cannot be used.
    Project(ProjectError),
    /// The client did not begin as the protocol demands.
    Client(String),
}

impl fmt::Display for StdioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(error) => error.fmt(f),
            Self::Client(reason) => write!(f, "the client did not begin a session: {reason}"),
        }
    }
}

impl std::error::Error for StdioError {}

/// Serves a client until its input ends, or `stop` resolves. Tasks that run then are interrupted: they go on when
/// they are resumed. Behind the end of the input, tasks of processes that were killed go on here until `stop` resolves.
pub async fn serve(
    config: StdioConfig,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), StdioError> {
    let environment = Environment { questions: Questions::default(), ..config.environment };
    let project = Project::find(&environment).map_err(StdioError::Project)?;
    let participant = Participant::new(project, environment, config.interface);
    let ending = CancellationToken::new();
    let backend = ProcessBackend {
        participant: participant.clone(),
        agents: config.agents,
        model: config.model,
        mode: config.mode,
        ending: ending.clone(),
        started: Mutex::default(),
    };
    let handler = McpHandler::new(Backend::Process(Arc::new(backend)));
    let input = EndingInput { input, ending: ending.clone() };
    let transport =
        AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
    let mut stop = std::pin::pin!(stop);
    let served = run(handler, transport, &ending, stop.as_mut()).await;
    ending.cancel();
    if matches!(served, Ok(Ended::Stopped)) {
        participant.leave().await;
    } else if let Some(remaining) = participant.into_remaining().await {
        tokio::select! {
            () = remaining.report_and_run() => {}
            () = stop => {}
        }
    }
    served.map(|_| ())
}

/// Why a connection has ended.
enum Ended {
    /// The client closed the input.
    Closed,
    /// This process is to stop.
    Stopped,
}

async fn run(
    handler: McpHandler,
    transport: impl rmcp::transport::Transport<RoleServer> + 'static,
    ending: &CancellationToken,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, StdioError> {
    let begun = tokio::select! {
        begun = serve_server::<_, _, _, TransportAdapterIdentity>(handler, transport) => begun,
        () = &mut stop => return Ok(Ended::Stopped),
    };
    let service = match begun {
        Ok(service) => service,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(Ended::Closed),
        Err(error) => return Err(StdioError::Client(error.to_string())),
    };
    let token = service.cancellation_token();
    let mut waiting = std::pin::pin!(service.waiting());
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = &mut stop => {
            // Calls that run interrupt their tasks, and are answered, before the connection ends.
            ending.cancel();
            token.cancel();
            if let Err(error) = waiting.await {
                tracing::debug!(%error, "the connection has not ended as it should");
            }
            return Ok(Ended::Stopped);
        }
    };
    match ended {
        Ok(_) => Ok(Ended::Closed),
        Err(error) => Err(StdioError::Client(error.to_string())),
    }
}

/// Input that tells when it has ended, before calls that run are answered.
struct EndingInput<R> {
    input: R,
    ending: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndingInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(cx, buffer);
        let has_ended = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended {
            self.ending.cancel();
        }
        read
    }
}
