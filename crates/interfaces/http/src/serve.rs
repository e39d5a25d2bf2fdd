//! The loop that takes connections, and its end.
//!
//! At most so many connections are open, by whichever way they came; the next one is not taken before
//! another ends. When the signal comes, no connection is taken any more, streams of events end, requests
//! that are under way are answered, and what is left after that is cut off. Nothing outlives [`serve()`].

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

use crate::doors::Limits;
use crate::hosts::Hosts;
use crate::house::ServerConfig;
use crate::listeners::{Guest, Listeners, Via};
use crate::room::AppState;
use crate::routes::router;
use crate::tls::Tls;
use crate::unstalled::Unstalled;

/// Longest head of a request, in bytes. A longer one is refused with 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves until `shutdown` is ready, then lets what is under way end. The orchestrator is left as
/// it is: whoever made it brings it to rest.
pub async fn serve(
    listeners: impl Into<Listeners>,
    house: impl Into<ServerConfig>,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (listeners, house) = (listeners.into(), house.into());
    let limits = house.doors.limits;
    let closing = CancellationToken::new();
    let hosts = Hosts::new(listeners.address()?, listeners.speaks(), &house.doors.hosts);
    let router = router(Arc::new(AppState::new(house, hosts, closing.clone())));
    let ways = Ways {
        address: router.clone().layer(Extension(Via::Address)),
        socket: router.layer(Extension(Via::Socket)),
    };
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            (guest, place) = accept(&listeners, &places) => {
                let connection =
                    Connection { router: ways.of(&guest), limits, closing: closing.clone() };
                connections.spawn(connection.run(guest, place));
            }
        }
    }
    drop(listeners);
    closing.cancel();
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain_wait, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut off: they did not end in time");
        connections.shutdown().await;
    }
    Ok(())
}

/// The same routes, for those who come by either way.
struct Ways {
    address: Router,
    socket: Router,
}

impl Ways {
    fn of(&self, guest: &Guest) -> Router {
        match guest {
            Guest::Plain(_) | Guest::Tls(..) => self.address.clone(),
            Guest::Socket(_) => self.socket.clone(),
        }
    }
}

/// The next connection, once there is a place for it. Cancel safe, as [`Listeners::next`] is.
async fn accept(listeners: &Listeners, places: &Arc<Semaphore>) -> (Guest, OwnedSemaphorePermit) {
    let Ok(place) = Arc::clone(places).acquire_owned().await else {
        // Nobody closes the places.
        return std::future::pending().await;
    };
    (listeners.next().await, place)
}

/// One connection.
struct Connection {
    router: Router,
    limits: Limits,
    closing: CancellationToken,
}

impl Connection {
    async fn run(self, guest: Guest, _place: OwnedSemaphorePermit) {
        match guest {
            Guest::Plain(stream) => self.talk(stream).await,
            Guest::Socket(stream) => self.talk(stream).await,
            Guest::Tls(stream, tls) => self.greet(stream, tls).await,
        }
    }

    /// The handshake, which is part of the head: it may take no longer.
    async fn greet(self, stream: TcpStream, Tls(acceptor): Tls) {
        let greeting = tokio::time::timeout(self.limits.head_wait, acceptor.accept(stream));
        match self.closing.run_until_cancelled(greeting).await {
            Some(Ok(Ok(stream))) => self.talk(stream).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "a handshake failed"),
            Some(Err(_)) => tracing::debug!("a handshake took too long"),
            None => {}
        }
    }

    async fn talk(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let io = TokioIo::new(Unstalled::new(stream, self.limits.read_wait));
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
