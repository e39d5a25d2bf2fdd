//! Accepts connections until shutdown, then drains them.
//!
//! At most [`ServerLimits::connections_max`] TCP connections and [`ServerLimits::socket_connections_max`] connections of the
//! Unix socket are open; the next one is accepted when another ends. A connection whose API key loses its access
//! while a response is sent is closed. At shutdown no further connection is accepted, event streams end, open requests are answered,
//! and connections that remain after [`ServerLimits::drain_wait`] are closed. Nothing outlives [`serve()`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use antiphon_keys::Peer;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::listeners::{Accepted, Listeners};
use super::tls::Tls;
use super::write_timeout::WriteTimeout;
use crate::access::hosts::Hosts;
use crate::access::key_watch::ConnectionKey;
use crate::limits::ServerLimits;
use crate::request::head::{PARSED_HEAD_BYTES_MAX, PARSED_HEADERS_MAX};
use crate::router::router;
use crate::server_config::ServerConfig;

/// When a server that serves on demand is built at the latest.
const BUILD_AFTER: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is ready, then drains. Does not shut down the orchestrator: its creator does.
pub async fn serve(
    listeners: impl Into<Listeners>,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    serve_from(None, listeners.into(), config, shutdown).await
}

/// The same for a process that may never be asked, and whose first work is more urgent: the server is built when the
/// first connection comes, or after a while.
pub async fn serve_on_demand(
    listeners: Listeners,
    config: impl FnOnce() -> ServerConfig + Send,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    tokio::pin!(shutdown);
    let first = tokio::select! {
        () = &mut shutdown => return Ok(()),
        accepted = listeners.next_tcp() => Some(accepted),
        accepted = listeners.next_unix() => Some(accepted),
        () = tokio::time::sleep(BUILD_AFTER) => None,
    };
    serve_from(first, listeners, config(), shutdown).await
}

/// Serves with a connection that was accepted before.
async fn serve_from(
    first: Option<Accepted>,
    listeners: Listeners,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let limits = config.deps.limits;
    let closing = CancellationToken::new();
    let hosts = Hosts::new(listeners.address()?, listeners.url_scheme(), &config.deps.hosts);
    let router = router(config, hosts, closing.clone()).map_err(io::Error::other)?;
    let connection = Connection { router, limits, closing };
    let (connections, ()) = accept_until(first, &listeners, &connection, shutdown).await;
    drop(listeners);
    drain(connections, &connection).await;
    Ok(())
}

/// Serves a router until `ready` is, then drains. The listeners stay open for the caller.
pub(super) async fn serve_router<T>(
    listeners: &Listeners,
    router: Router,
    limits: ServerLimits,
    ready: impl Future<Output = T>,
) -> T {
    let connection = Connection { router, limits, closing: CancellationToken::new() };
    let (connections, ready) = accept_until(None, listeners, &connection, ready).await;
    drain(connections, &connection).await;
    ready
}

/// Serves each connection that is accepted until `end` is ready. Returns those that are open then.
async fn accept_until<T>(
    first: Option<Accepted>,
    listeners: &Listeners,
    connection: &Connection,
    end: impl Future<Output = T>,
) -> (JoinSet<()>, T) {
    let limits = connection.limits;
    let tcp_permits = Arc::new(Semaphore::new(limits.connections_max));
    let unix_permits = Arc::new(Semaphore::new(limits.socket_connections_max));
    let mut connections = JoinSet::new();
    if let Some(first) = first {
        let (accepted, permit) = accept(std::future::ready(first), &unix_permits).await;
        connections.spawn(connection.clone().run(accepted, permit));
    }
    tokio::pin!(end);
    loop {
        let (accepted, permit) = tokio::select! {
            ended = &mut end => return (connections, ended),
            Some(_) = connections.join_next() => continue,
            accepted = accept(listeners.next_tcp(), &tcp_permits) => accepted,
            accepted = accept(listeners.next_unix(), &unix_permits) => accepted,
        };
        connections.spawn(connection.clone().run(accepted, permit));
    }
}

/// Answers the requests of open connections, and closes those that remain in the end.
async fn drain(mut connections: JoinSet<()>, connection: &Connection) {
    connection.closing.cancel();
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(connection.limits.drain_wait, drained).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "closed connections that did not end in time"
        );
        connections.shutdown().await;
    }
}

/// The next connection, once fewer than the limit are open. Cancel safe, as `next` is.
async fn accept(
    next: impl Future<Output = Accepted>,
    permits: &Arc<Semaphore>,
) -> (Accepted, OwnedSemaphorePermit) {
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
        // The semaphore is never closed.
        return std::future::pending().await;
    };
    (next.await, permit)
}

#[derive(Clone)]
struct Connection {
    router: Router,
    limits: ServerLimits,
    closing: CancellationToken,
}

impl Connection {
    async fn run(self, accepted: Accepted, _permit: OwnedSemaphorePermit) {
        match accepted {
            Accepted::Tcp(stream, peer) => self.serve(stream, peer).await,
            Accepted::Unix(stream) => self.serve(stream, Peer::Socket).await,
            Accepted::Tls(stream, peer, tls) => self.handshake(stream, peer, tls).await,
        }
    }

    /// The TLS handshake, within the time limit of a request's head.
    async fn handshake(self, stream: TcpStream, peer: Peer, Tls(acceptor): Tls) {
        let handshake = tokio::time::timeout(self.limits.head_wait, acceptor.accept(stream));
        match self.closing.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve(stream, peer).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
            Some(Err(_)) => tracing::debug!("a TLS handshake took too long"),
            None => {}
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer) {
        let io = TokioIo::new(WriteTimeout::new(stream, self.limits.read_wait));
        let key = ConnectionKey::new();
        let router = TowerToHyperService::new(self.router);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(key.clone());
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_wait)
            .max_buf_size(PARSED_HEAD_BYTES_MAX)
            .max_headers(PARSED_HEADERS_MAX)
            .serve_connection(io, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = key.lost() => return,
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_server_on_demand_that_is_not_asked_is_not_built() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let build = || unreachable!("no connection came");
        serve_on_demand(listener.into(), build, std::future::ready(())).await.unwrap();
    }
}
