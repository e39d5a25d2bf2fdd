//! Accepts connections until shutdown, then drains them.
//!
//! At most [`Limits::connections_max`] connections are open over all listeners; the next one is accepted when
//! another ends. At shutdown no further connection is accepted, event streams end, open requests are answered,
//! and connections that remain after [`Limits::drain_wait`] are closed. Nothing outlives [`serve()`].

use std::io;
use std::sync::Arc;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::listeners::{Accepted, ListenerKind, Listeners};
use super::tls::Tls;
use super::write_timeout::WriteTimeout;
use crate::access::hosts::Hosts;
use crate::limits::Limits;
use crate::router::router;
use crate::server_config::ServerConfig;

/// Longest head of a request, in bytes. A longer one is refused with 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves until `shutdown` is ready, then drains. Does not shut down the orchestrator: its creator does.
pub async fn serve(
    listeners: impl Into<Listeners>,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let listeners = listeners.into();
    let limits = config.deps.limits;
    let closing = CancellationToken::new();
    let hosts = Hosts::new(listeners.address()?, listeners.url_scheme(), &config.deps.hosts);
    let router = router(config, hosts, closing.clone());
    let routers = Routers {
        tcp: router.clone().layer(Extension(ListenerKind::Tcp)),
        unix: router.layer(Extension(ListenerKind::Unix)),
    };
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            (accepted, permit) = accept(&listeners, &permits) => {
                let router = routers.of(&accepted);
                let connection = Connection { router, limits, closing: closing.clone() };
                connections.spawn(connection.run(accepted, permit));
            }
        }
    }
    drop(listeners);
    closing.cancel();
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain_wait, drained).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "closed connections that did not end in time"
        );
        connections.shutdown().await;
    }
    Ok(())
}

/// The same routes, for each kind of listener.
struct Routers {
    tcp: Router,
    unix: Router,
}

impl Routers {
    fn of(&self, accepted: &Accepted) -> Router {
        match accepted {
            Accepted::Tcp(_) | Accepted::Tls(..) => self.tcp.clone(),
            Accepted::Unix(_) => self.unix.clone(),
        }
    }
}

/// The next connection, once fewer than the limit are open. Cancel safe, as [`Listeners::next`] is.
async fn accept(
    listeners: &Listeners,
    permits: &Arc<Semaphore>,
) -> (Accepted, OwnedSemaphorePermit) {
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
        // The semaphore is never closed.
        return std::future::pending().await;
    };
    (listeners.next().await, permit)
}

struct Connection {
    router: Router,
    limits: Limits,
    closing: CancellationToken,
}

impl Connection {
    async fn run(self, accepted: Accepted, _permit: OwnedSemaphorePermit) {
        match accepted {
            Accepted::Tcp(stream) => self.serve(stream).await,
            Accepted::Unix(stream) => self.serve(stream).await,
            Accepted::Tls(stream, tls) => self.handshake(stream, tls).await,
        }
    }

    /// The TLS handshake, within the time limit of a request's head.
    async fn handshake(self, stream: TcpStream, Tls(acceptor): Tls) {
        let handshake = tokio::time::timeout(self.limits.head_wait, acceptor.accept(stream));
        match self.closing.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve(stream).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
            Some(Err(_)) => tracing::debug!("a TLS handshake took too long"),
            None => {}
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let io = TokioIo::new(WriteTimeout::new(stream, self.limits.read_wait));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_wait)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(io, TowerToHyperService::new(self.router));
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
