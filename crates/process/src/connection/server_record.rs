//! The files that a server writes into the project's folder: where it listens, and the token. A client
//! refuses files that other users could read or write, and addresses outside of this machine.

use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use antiphon_client::Endpoint;
use antiphon_core::escaped;
use secrecy::SecretString;
use serde::Deserialize;

use super::journal_owner;
use crate::socket_file::SOCKET;
use antiphon_project::error::ProjectError;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// `server.json`: where a server listens, and its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerRecord {
    pub(super) endpoint: Endpoint,
    pub(super) pid: u32,
}

#[derive(Deserialize)]
struct RecordJson {
    url: Option<String>,
    pid: u32,
    #[serde(default)]
    socket: bool,
}

impl ServerRecord {
    /// Reads the record, if there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, ProjectError> {
        let path = folder.join("server.json");
        let text = match read_private(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(distrust(&path, &error.to_string())),
        };
        let wire = serde_json::from_str(&text).ok();
        let wire: RecordJson =
            wire.filter(|wire: &RecordJson| wire.url.is_some() || wire.socket)
                .ok_or_else(|| distrust(&path, "no server of this version wrote it"))?;
        let url = wire.url.as_deref().unwrap_or_default();
        let endpoint = match (loopback(url), wire.socket) {
            (Some(address), _) => address_endpoint(&path, address)?,
            // With TLS, or on a network address, the socket is the way on this machine.
            (None, true) => {
                let missing = || distrust(&path, "its socket is not there");
                Endpoint::Socket(socket(folder)?.ok_or_else(missing)?)
            }
            (None, false) => {
                let url = escaped(url);
                let reason = format!("a token is sent to the loopback only, and not to `{url}`");
                return Err(distrust(&path, &reason));
            }
        };
        Ok(Some(Self { endpoint, pid: wire.pid }))
    }
}

/// The socket in the project's folder, if there is one. It has to belong to the user.
pub(super) fn socket(folder: &Path) -> Result<Option<PathBuf>, ProjectError> {
    let path = folder.join(SOCKET);
    let about = match fs::symlink_metadata(&path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(distrust(&path, &error.to_string())),
    };
    let user = journal_owner::user().map_err(|error| distrust(&path, &error.to_string()))?;
    if !about.file_type().is_socket() || about.uid() != user {
        return Err(distrust(&path, "it is not a socket of this user"));
    }
    Ok(Some(path))
}

/// The token of the server.
pub(super) fn token(folder: &Path) -> Result<SecretString, ProjectError> {
    let path = folder.join("token");
    let text = read_private(&path).map_err(|error| distrust(&path, &error.to_string()))?;
    let token = text.trim();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(distrust(&path, "it holds no token"));
    }
    Ok(token.into())
}

fn address_endpoint(path: &Path, address: SocketAddr) -> Result<Endpoint, ProjectError> {
    Endpoint::parse(&format!("http://{address}")).map_err(|reason| distrust(path, &reason))
}

/// The address of a URL, if it is on the loopback and the URL holds nothing else.
fn loopback(url: &str) -> Option<SocketAddr> {
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    let ip = address.ip();
    // A server that listens on all addresses listens on the loopback, too.
    let ip = match (ip.is_unspecified(), ip.is_ipv4()) {
        (true, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (true, false) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        (false, _) => ip,
    };
    (ip.is_loopback() && address.port() != 0).then(|| SocketAddr::new(ip, address.port()))
}

/// The text of a file that belongs to the user and that no other user can read or write.
fn read_private(path: &Path) -> io::Result<String> {
    let file = antiphon_private_file::open(path)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn distrust(path: &Path, reason: &str) -> ProjectError {
    ProjectError::Refused(format!(
        "{} cannot be trusted: {reason}. Stop the server and start it again",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_server_outside_of_the_loopback_is_reached_on_its_socket_if_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.json");
        let read = |url: &str, socket: bool| {
            let about = serde_json::json!({"url": url, "pid": 7, "socket": socket});
            fs::write(&file, about.to_string()).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            ServerRecord::read(folder.path())
        };
        let loopback = Endpoint::parse("http://127.0.0.1:7117").unwrap();
        let socket = Endpoint::Socket(folder.path().join("server.sock"));
        let reached = |at: &Endpoint| Some(ServerRecord { endpoint: at.clone(), pid: 7 });
        let foreign = ["http://192.0.2.1:7117", "https://192.0.2.1:7117", "https://127.0.0.1:7117"];
        for url in foreign {
            assert!(read(url, true).is_err(), "{url}: there is no socket");
        }
        let _listener = UnixListener::bind(folder.path().join("server.sock")).unwrap();
        for url in foreign {
            assert_eq!(read(url, true).unwrap(), reached(&socket), "{url}");
            assert!(read(url, false).is_err(), "{url}");
        }
        for has_socket in [true, false] {
            assert_eq!(read("http://0.0.0.0:7117", has_socket).unwrap(), reached(&loopback));
        }
    }

    #[test]
    fn only_a_loopback_address_is_used_and_the_unspecified_one_becomes_one() {
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
