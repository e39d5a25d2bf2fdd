//! Where a server listens: on an address, in the clear or with TLS, on a socket in a folder, or on both.
//! A socket is for one user: a process of anybody else is hung up on, whatever the file lets it do.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::hosts::Speaks;
use crate::tls::Tls;

/// How long to wait when the system has no room for another connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Where a server listens. An address alone is one.
#[derive(Debug, Default)]
pub struct Listeners {
    /// On an address.
    pub tcp: Option<TcpListener>,
    /// What is spoken there, if not in the clear.
    pub tls: Option<Tls>,
    /// On a socket in a folder.
    pub socket: Option<UnixSocket>,
}

/// A socket for one user.
#[derive(Debug)]
pub struct UnixSocket {
    /// The socket.
    pub listener: UnixListener,
    /// Who may connect.
    pub uid: u32,
}

impl From<TcpListener> for Listeners {
    fn from(listener: TcpListener) -> Self {
        Self { tcp: Some(listener), ..Self::default() }
    }
}

/// By which way a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Address,
    Socket,
}

/// Somebody who connected.
pub(crate) enum Guest {
    Plain(TcpStream),
    Tls(TcpStream, Tls),
    Socket(UnixStream),
}

impl Listeners {
    /// The address, if there is one.
    pub(crate) fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.tcp.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// What is spoken there.
    pub(crate) fn speaks(&self) -> Speaks {
        if self.tls.is_some() { Speaks::Https } else { Speaks::Http }
    }

    /// The next one who connects. Cancel safe: whoever is not handed out is still in the queue of the
    /// system.
    pub(crate) async fn next(&self) -> Guest {
        loop {
            let taken = tokio::select! {
                taken = on_address(self.tcp.as_ref()) => taken.map(|stream| match &self.tls {
                    Some(tls) => Some(Guest::Tls(stream, tls.clone())),
                    None => Some(Guest::Plain(stream)),
                }),
                taken = on_socket(self.socket.as_ref()) => taken.map(|stream| stream.map(Guest::Socket)),
            };
            match taken {
                Ok(Some(guest)) => return guest,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "could not take a connection");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }
}

async fn on_address(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    let Some(listener) = listener else { return std::future::pending().await };
    let (stream, _) = listener.accept().await?;
    // Small answers are not held back. A socket that cannot do so works as well.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// `None` is somebody else's process.
async fn on_socket(door: Option<&UnixSocket>) -> io::Result<Option<UnixStream>> {
    let Some(door) = door else { return std::future::pending().await };
    let (stream, _) = door.listener.accept().await?;
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == door.uid => Ok(Some(stream)),
        Ok(peer) => {
            tracing::warn!(peer.uid = peer.uid(), "another user's process was hung up on");
            Ok(None)
        }
        Err(error) => {
            tracing::warn!(%error, "a process that does not say whose it is was hung up on");
            Ok(None)
        }
    }
}
