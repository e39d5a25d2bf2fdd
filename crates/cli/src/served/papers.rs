//! What a server leaves in the project's folder, as a client reads it: where it listens, and the token.
//! What others could have read or written is refused, and so is an address off this machine.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use antiphon_core::visible;
use antiphon_private_file as private_file;
use reqwest::header::HeaderValue;
use serde::Deserialize;

use super::owner;
use crate::failure::Failure;

/// Longest paper, in bytes.
const PAPER_BYTES_MAX: u64 = 4096;

/// Where a server says that it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) place: Place,
    pub(super) pid: u32,
}

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// On the loopback, in the clear.
    Address(SocketAddr),
    /// On the socket in the project's folder.
    Socket(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

#[derive(Deserialize)]
struct NoticeWire {
    url: Option<String>,
    pid: u32,
    #[serde(default)]
    socket: bool,
}

impl Notice {
    /// What the server says, if there is anything.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join("server.json");
        let text = match read_private(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(distrust(&path, &error.to_string())),
        };
        let wire = serde_json::from_str(&text).ok();
        let wire: NoticeWire =
            wire.filter(|wire: &NoticeWire| wire.url.is_some() || wire.socket)
                .ok_or_else(|| distrust(&path, "no server of this version wrote it"))?;
        let url = wire.url.as_deref().unwrap_or_default();
        let place = match (loopback(url), wire.socket) {
            (Some(address), _) => Place::Address(address),
            // With TLS, or on an address of the network, this machine has a shorter way.
            (None, true) => Place::Socket(socket(folder)?),
            (None, false) => {
                let url = visible(url);
                let reason = format!("the token goes to the loopback only, and not to `{url}`");
                return Err(distrust(&path, &reason));
            }
        };
        Ok(Some(Self { place, pid: wire.pid }))
    }
}

/// The socket in the project's folder, which is the user's own.
fn socket(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("server.sock");
    let about = fs::symlink_metadata(&path).map_err(|error| distrust(&path, &error.to_string()))?;
    let user = owner::user().map_err(|error| distrust(&path, &error.to_string()))?;
    if !about.file_type().is_socket() || about.uid() != user {
        return Err(distrust(&path, "it is no socket of yours"));
    }
    Ok(path)
}

/// The token, as it is shown.
pub(super) fn token(folder: &Path) -> Result<HeaderValue, Failure> {
    let path = folder.join("token");
    let text = read_private(&path).map_err(|error| distrust(&path, &error.to_string()))?;
    let mut shown = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
        .map_err(|_| distrust(&path, "it holds no token"))?;
    // Printed as `Sensitive`.
    shown.set_sensitive(true);
    Ok(shown)
}

/// The address, if it is the loopback and nothing but an address.
fn loopback(url: &str) -> Option<SocketAddr> {
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    let ip = address.ip();
    // Who listens everywhere listens there, too.
    let ip = match (ip.is_unspecified(), ip.is_ipv4()) {
        (true, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (true, false) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        (false, _) => ip,
    };
    (ip.is_loopback() && address.port() != 0).then(|| SocketAddr::new(ip, address.port()))
}

/// A file that only its owner, who is the user, could read or write.
fn read_private(path: &Path) -> io::Result<String> {
    let file = private_file::open(path)?;
    let mut text = String::new();
    file.take(PAPER_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > PAPER_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {PAPER_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn distrust(path: &Path, reason: &str) -> Failure {
    Failure::refused(format!(
        "{} is not to be trusted: {reason}. End the server and start it again",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn whoever_does_not_listen_on_the_loopback_is_reached_on_the_socket_if_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let paper = folder.path().join("server.json");
        let read = |url: &str, socket: bool| {
            let about = serde_json::json!({"url": url, "pid": 7, "socket": socket});
            fs::write(&paper, about.to_string()).unwrap();
            fs::set_permissions(&paper, fs::Permissions::from_mode(0o600)).unwrap();
            Notice::read(folder.path())
        };
        let loopback = Place::Address("127.0.0.1:7117".parse().unwrap());
        let socket = Place::Socket(folder.path().join("server.sock"));
        let reached = |place: &Place| Some(Notice { place: place.clone(), pid: 7 });
        let foreign = ["http://192.0.2.1:7117", "https://192.0.2.1:7117", "https://127.0.0.1:7117"];
        for url in foreign {
            assert!(read(url, true).is_err(), "{url}: there is no socket");
        }
        let _listener = UnixListener::bind(folder.path().join("server.sock")).unwrap();
        for url in foreign {
            assert_eq!(read(url, true).unwrap(), reached(&socket), "{url}");
            assert!(read(url, false).is_err(), "{url}");
        }
        for said in [true, false] {
            assert_eq!(read("http://0.0.0.0:7117", said).unwrap(), reached(&loopback));
        }
    }

    #[test]
    fn only_the_loopback_is_an_address_and_everywhere_is_there_too() {
        for (url, expected) in [
            ("http://127.0.0.1:7117", "127.0.0.1:7117"),
            ("http://127.8.9.1:7117", "127.8.9.1:7117"),
            ("http://[::1]:7117", "[::1]:7117"),
            ("http://0.0.0.0:7117", "127.0.0.1:7117"),
            ("http://[::]:7117", "[::1]:7117"),
        ] {
            assert_eq!(loopback(url), expected.parse().ok(), "{url}");
        }
        for foreign in [
            "https://127.0.0.1:7117",
            "http://192.0.2.1:7117",
            "http://[2001:db8::1]:7117",
            "http://localhost:7117",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "http://127.0.0.1:7117/path",
            "http://127.0.0.1:7117@evil.example",
            "http://user@127.0.0.1:7117",
            "127.0.0.1:7117",
            "",
        ] {
            assert_eq!(loopback(foreign), None, "{foreign}");
        }
    }
}
