//! Where a server listens: on an address, with or without TLS, and on a Unix socket in the project's folder.
//!
//! An address that other machines can reach needs TLS or `--insecure-listen`. The socket is for this user
//! alone; a server that cannot create it runs without it, unless it is the only listener.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use antiphon_interface_transport::{Listeners, Tls};
use antiphon_process::{SOCKET, SocketFile, bind};
use clap::Args;
use tokio::net::TcpListener;

use crate::failure::Failure;

/// Largest certificate or key file, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// What to do about an address that is in use.
const IN_USE: &str =
    ": another server has it, maybe that of another project. Give another address with `--listen`";

/// Where to listen.
#[derive(Debug, Args)]
pub(super) struct Listening {
    /// Address to listen on (port 0 selects a free one), or `unix` for the socket alone.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7117")]
    listen: ListenTarget,

    /// TLS certificate in PEM, followed by its chain.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listen on a public address without TLS, although tokens and answers are sent unencrypted.
    #[arg(long)]
    insecure_listen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenTarget {
    Address(SocketAddr),
    Socket,
}

impl FromStr for ListenTarget {
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

/// The address of a server that may not have its journal yet.
pub(super) struct OpenAddress {
    /// The TCP listener, if there is one.
    pub(super) listeners: Listeners,
    /// Its URL.
    pub(super) url: Option<String>,
}

/// The listeners of a server, and where clients find it.
pub(super) struct Opened {
    pub(super) listeners: Listeners,
    /// Its URL; absent when it listens on the socket alone.
    pub(super) url: Option<String>,
    /// Its socket file; removed when it is dropped.
    pub(super) socket: Option<SocketFile>,
}

impl Listening {
    /// Refuses a public address without TLS, and an invalid certificate.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.listen {
            ListenTarget::Socket if self.tls_cert.is_some() => {
                Err(Failure::usage("`--listen unix` has no TLS: omit --tls-cert and --tls-key"))
            }
            ListenTarget::Address(address)
                if !address.ip().is_loopback()
                    && self.tls_cert.is_none()
                    && !self.insecure_listen =>
            {
                Err(Failure::usage(format!(
                    "{address} can be reached from other machines, and everything would be sent unencrypted: \
                     give --tls-cert and --tls-key, put a proxy with TLS in front of 127.0.0.1, or use \
                     --insecure-listen"
                )))
            }
            ListenTarget::Socket | ListenTarget::Address(_) => self.tls().map(drop),
        }
    }

    /// Listens on the address, if there is one.
    pub(super) async fn open_address(&self) -> Result<OpenAddress, Failure> {
        let tls = self.tls()?;
        let (tcp, url) = match self.listen {
            ListenTarget::Address(address) => {
                let refuse = |error: io::Error| {
                    let in_use = error.kind() == io::ErrorKind::AddrInUse;
                    let hint = if in_use { IN_USE } else { "" };
                    Failure::unavailable(format!("cannot listen on {address}: {error}{hint}"))
                };
                let listener = TcpListener::bind(address).await.map_err(refuse)?;
                let scheme = if tls.is_some() { "https" } else { "http" };
                let url = format!("{scheme}://{}", listener.local_addr().map_err(refuse)?);
                (Some(listener), Some(url))
            }
            ListenTarget::Socket => (None, None),
        };
        Ok(OpenAddress { listeners: Listeners { tcp, tls, socket: None }, url })
    }

    /// Opens the other listeners. This process holds the lock of the journal.
    pub(super) fn open(address: OpenAddress, folder: &Path) -> Result<Opened, Failure> {
        let OpenAddress { listeners, url } = address;
        let Listeners { tcp, tls, .. } = listeners;
        let (unix, socket) = match bind(&folder.join(SOCKET)) {
            Ok((unix, file)) => (Some(unix), Some(file)),
            Err(reason) if tcp.is_none() => return Err(Failure::unavailable(reason)),
            Err(reason) => {
                let effect =
                    if tls.is_some() { ", so commands here do not find this server" } else { "" };
                tracing::warn!("there is no socket{effect}: {reason}");
                (None, None)
            }
        };
        Ok(Opened { listeners: Listeners { tcp, tls, socket: unix }, url, socket })
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
        return Err(refuse(format!("it is not a file of at most {PEM_BYTES_MAX} bytes")));
    }
    fs::read(path).map_err(|error| refuse(error.to_string()))
}
