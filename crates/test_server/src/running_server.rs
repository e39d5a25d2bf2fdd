//! A server that runs until it is stopped.

use std::net::SocketAddr;
use std::time::Duration;

use antiphon_interface_transport::{Listeners, ServerConfig, serve};
use antiphon_runtime::Orchestrator;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The owner's token in tests.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// How long the orchestrator may take to stop.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// A server that runs until it is stopped or dropped.
pub struct RunningServer {
    /// Address of the TCP listener.
    pub address: SocketAddr,
    orchestrator: Orchestrator,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinSet<()>,
}

impl RunningServer {
    /// Serves `config` at `address`, of which port 0 is any free port. `listeners` may add a TLS port or a
    /// socket to the TCP listener.
    pub async fn start(
        address: SocketAddr,
        config: ServerConfig,
        listeners: impl FnOnce(TcpListener) -> Listeners,
    ) -> Self {
        let tcp = TcpListener::bind(address).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let (listeners, orchestrator) = (listeners(tcp), config.deps.orchestrator.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve(listeners, config, stopped).await.unwrap();
        });
        Self { address, orchestrator, stop: Some(stop), serving }
    }

    /// Tells the server to stop, and does not wait for it.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server and its orchestrator.
    pub async fn stop(mut self) {
        self.begin_stop();
        self.serving.join_next().await.unwrap().unwrap();
        self.orchestrator.shutdown(SHUTDOWN_LIMIT).await;
    }
}
