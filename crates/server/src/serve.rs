//! The loop that takes connections, and its end.
//!
//! At most so many connections are open; the next one is not taken before another ends. When the
//! signal comes, no connection is taken any more, streams of events end, requests that are under
//! way are answered, and what is left after that is cut off. Nothing outlives [`serve()`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::doors::Limits;
use crate::house::House;
use crate::room::Room;
use crate::routes::router;
use crate::unstalled::Unstalled;

/// Longest head of a request, in bytes. A longer one is refused with 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long to wait when the system has no room for another connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is ready, then lets what is under way end. The orchestrator is left as
/// it is: whoever made it brings it to rest.
pub async fn serve(
    listener: TcpListener,
    house: impl Into<House>,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let house = house.into();
    let limits = house.doors.limits;
    let closing = CancellationToken::new();
    let router = router(Arc::new(Room::new(house, address, closing.clone())));
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            (socket, place) = accept(&listener, &places) => {
                let connection = Connection { router: router.clone(), limits, closing: closing.clone() };
                connections.spawn(connection.run(socket, place));
            }
        }
    }
    drop(listener);
    closing.cancel();
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain_wait, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut off: they did not end in time");
        connections.shutdown().await;
    }
    Ok(())
}

/// The next connection, once there is a place for it. Cancel safe: one that is not handed out is
/// still in the queue of the system.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let Ok(place) = Arc::clone(places).acquire_owned().await else {
        // Nobody closes the places.
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return (socket, place),
            Err(error) => {
                tracing::warn!(%error, "could not take a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// One connection.
struct Connection {
    router: Router,
    limits: Limits,
    closing: CancellationToken,
}

impl Connection {
    async fn run(self, socket: TcpStream, _place: OwnedSemaphorePermit) {
        // Small answers are not held back. A socket that cannot do so works as well.
        let _ = socket.set_nodelay(true);
        let io = TokioIo::new(Unstalled::new(socket, self.limits.read_wait));
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
