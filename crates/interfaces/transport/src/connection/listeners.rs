//! Where a server listens: on a TCP address, with or without TLS, on a Unix socket, or on both. A Unix socket
//! serves one user: a connection of another user's process is closed, even if the file permissions allow it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tls::Tls;
use crate::access::hosts::UrlScheme;

/// Pause after a failed `accept`, when the system has no resources for another connection.
const ACCEPT_RETRY_WAIT: Duration = Duration::from_millis(100);

/// Where a server listens. A TCP listener converts into it.
#[derive(Debug, Default)]
pub struct Listeners {
    /// TCP listener.
    pub tcp: Option<TcpListener>,
    /// TLS of the TCP listener; plain HTTP when absent.
    pub tls: Option<Tls>,
    /// Unix socket.
    pub socket: Option<UnixSocket>,
}

/// A Unix socket for one user.
#[derive(Debug)]
pub struct UnixSocket {
    /// The listener.
    pub listener: UnixListener,
    /// User id of the processes that may connect.
    pub uid: u32,
}

impl From<TcpListener> for Listeners {
    fn from(listener: TcpListener) -> Self {
        Self { tcp: Some(listener), ..Self::default() }
    }
}

/// The listener that a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    Tcp,
    Unix,
}

/// An accepted connection.
pub(crate) enum Accepted {
    Tcp(TcpStream),
    Tls(TcpStream, Tls),
    Unix(UnixStream),
}

impl Listeners {
    /// Address of the TCP listener, if there is one.
    pub(crate) fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.tcp.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// URL scheme of the TCP listener.
    pub(crate) fn url_scheme(&self) -> UrlScheme {
        if self.tls.is_some() { UrlScheme::Https } else { UrlScheme::Http }
    }

    /// The next connection. Cancel safe: a connection that is not returned stays in the queue of the system.
    pub(crate) async fn next(&self) -> Accepted {
        loop {
            let accepted = tokio::select! {
                accepted = accept_tcp(self.tcp.as_ref()) => accepted.map(|stream| match &self.tls {
                    Some(tls) => Some(Accepted::Tls(stream, tls.clone())),
                    None => Some(Accepted::Tcp(stream)),
                }),
                accepted = accept_unix(self.socket.as_ref()) => accepted.map(|stream| stream.map(Accepted::Unix)),
            };
            match accepted {
                Ok(Some(connection)) => return connection,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_WAIT).await;
                }
            }
        }
    }
}

async fn accept_tcp(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    let Some(listener) = listener else { return std::future::pending().await };
    let (stream, _) = listener.accept().await?;
    // Sends small responses at once. A socket without this option works too.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// `None` for a process of another user.
async fn accept_unix(socket: Option<&UnixSocket>) -> io::Result<Option<UnixStream>> {
    let Some(socket) = socket else { return std::future::pending().await };
    let (stream, _) = socket.listener.accept().await?;
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == socket.uid => Ok(Some(stream)),
        Ok(peer) => {
            tracing::warn!(peer.uid = peer.uid(), "closed a connection of another user's process");
            Ok(None)
        }
        Err(error) => {
            tracing::warn!(%error, "closed a connection of a process of unknown user");
            Ok(None)
        }
    }
}
