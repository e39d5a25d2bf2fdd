//! Where a server listens: on an address, in the clear or with TLS, and on a socket in the project's folder.
//!
//! An address that others can reach needs TLS, or a word that everything may travel in the clear. The socket
//! is for this user alone; a server that cannot have one goes on without, unless there is nothing else.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use antiphon_interface_transport::{Listeners, Tls, UnixSocket};
use clap::Args;
use tokio::net::{TcpListener, UnixListener};

use crate::failure::Failure;

/// Largest file that is read as a certificate or a key, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// The socket, in the project's folder.
pub(super) const SOCKET: &str = "server.sock";

/// Where to listen.
#[derive(Debug, Args)]
pub(super) struct Listening {
    /// Where to listen: an address, whose port 0 is any that is free, or `unix` for the socket alone.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7117")]
    listen: Place,

    /// A certificate in PEM, with those that vouch for it behind it: speak TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listen where others can reach it, although tokens and answers travel in the clear.
    #[arg(long)]
    insecure_listen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Address(SocketAddr),
    Socket,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unix" => Ok(Self::Socket),
            address => address.parse().map(Self::Address).map_err(|_| {
                "expected an address with a port, such as 127.0.0.1:7117, or `unix`".to_owned()
            }),
        }
    }
}

/// A server that listens, and what clients need to know of it.
pub(super) struct Opened {
    pub(super) listeners: Listeners,
    /// Its address; without one there is only the socket.
    pub(super) url: Option<String>,
    /// Its socket, as long as it listens.
    pub(super) socket: Option<SocketFile>,
}

impl Listening {
    /// Refuses what would travel in the clear, and what is no certificate, before anything is done.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.listen {
            Place::Socket if self.tls_cert.is_some() => {
                Err(Failure::usage("`--listen unix` is on this machine: it has no TLS"))
            }
            Place::Address(address)
                if !address.ip().is_loopback()
                    && self.tls_cert.is_none()
                    && !self.insecure_listen =>
            {
                Err(Failure::usage(format!(
                    "{address} can be reached from elsewhere, and everything would travel in the clear: \
                     give --tls-cert and --tls-key, put a proxy with TLS in front of 127.0.0.1, or say \
                     --insecure-listen"
                )))
            }
            Place::Socket | Place::Address(_) => self.tls().map(drop),
        }
    }

    /// Begins to listen.
    pub(super) async fn open(&self, folder: &Path) -> Result<Opened, Failure> {
        let tls = self.tls()?;
        let (tcp, url) = match self.listen {
            Place::Address(address) => {
                let refuse = |error: io::Error| {
                    Failure::unavailable(format!("cannot listen on {address}: {error}"))
                };
                let listener = TcpListener::bind(address).await.map_err(refuse)?;
                let scheme = if tls.is_some() { "https" } else { "http" };
                let url = format!("{scheme}://{}", listener.local_addr().map_err(refuse)?);
                (Some(listener), Some(url))
            }
            Place::Socket => (None, None),
        };
        let (door, socket) = match bind(&folder.join(SOCKET)) {
            Ok((door, file)) => (Some(door), Some(file)),
            Err(reason) if tcp.is_none() => return Err(Failure::unavailable(reason)),
            Err(reason) => {
                let lost =
                    if tls.is_some() { ", so commands here do not find this server" } else { "" };
                tracing::warn!("there is no socket{lost}: {reason}");
                (None, None)
            }
        };
        Ok(Opened { listeners: Listeners { tcp, tls, socket: door }, url, socket })
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let tls = Tls::from_pem(&pem(cert)?, &pem(key)?).map_err(|error| {
            Failure::usage(format!("{} and {}: {error}", cert.display(), key.display()))
        })?;
        Ok(Some(tls))
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, Failure> {
    let refuse =
        |reason: String| Failure::usage(format!("cannot read {}: {reason}", path.display()));
    let about = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !about.is_file() || about.len() > PEM_BYTES_MAX {
        return Err(refuse(format!("it is no file of at most {PEM_BYTES_MAX} bytes")));
    }
    fs::read(path).map_err(|error| refuse(error.to_string()))
}

/// The file of a socket. It goes when this does.
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whoever finds it finds nobody there, which is as good.
        let _ = fs::remove_file(&self.0);
    }
}

/// A socket for this user alone. One that a dead server left is replaced; anything else is left alone.
fn bind(path: &Path) -> Result<(UnixSocket, SocketFile), String> {
    let refuse = |reason: String| format!("cannot listen on {}: {reason}", path.display());
    let fault = |error: io::Error| refuse(error.to_string());
    let uid = fs::metadata("/proc/self").map_err(fault)?.uid();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fault(error)),
        Ok(about) if !about.file_type().is_socket() || about.uid() != uid => {
            return Err(refuse("something else is in its place: remove it".to_owned()));
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(fault)?;
            }
            Err(error) => return Err(fault(error)),
            Ok(_) => return Err(refuse("another process listens there: end it".to_owned())),
        },
    }
    let listener = UnixListener::bind(path).map_err(fault)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(fault)?;
    Ok((UnixSocket { listener, uid }, file))
}
