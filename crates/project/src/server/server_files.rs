//! Files of a server in the state folder of its project: its token, which stays, and `server.json` with its address,
//! which is removed when it stops. Only their owner can read them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use antiphon_private_file::{Durability, write_atomic};
use secrecy::SecretString;
use serde_json::json;

use crate::error::ProjectError;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Largest token file, in bytes.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// Files of a server in the state folder of its project.
pub struct ServerFiles {
    folder: PathBuf,
    token: PathBuf,
    server: PathBuf,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub struct ServerAddress<'a> {
    /// URL of its TCP listener; absent when it listens on the socket alone.
    pub url: Option<&'a str>,
    /// Path of its Unix socket; absent when it has none.
    pub socket: Option<&'a Path>,
}

impl ServerFiles {
    /// The files in this state folder.
    pub fn new(folder: &Path) -> Self {
        let (token, server) = (folder.join("token"), folder.join("server.json"));
        Self { folder: folder.to_owned(), token, server }
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the token file.
    pub fn token_path(&self) -> &Path {
        &self.token
    }

    /// The token. A new one is created when there is none, and when other users could have read the file.
    pub fn token(&self) -> Result<SecretString, ProjectError> {
        let refuse = |error: io::Error| {
            ProjectError::InvalidInput(format!("cannot use {}: {error}", self.token.display()))
        };
        let text = match read_private(&self.token) {
            Ok(text) => text,
            Err(_) => {
                let text = random().map_err(refuse)?;
                write_atomic(&self.token, format!("{text}\n").as_bytes(), Durability::Synced)
                    .map_err(refuse)?;
                text
            }
        };
        Ok(text.trim().into())
    }

    /// Writes `server.json`, which commands find the server by.
    pub fn publish(&self, address: ServerAddress<'_>) -> Result<(), ProjectError> {
        let mut about = json!({ "pid": std::process::id(), "socket": address.socket.is_some() });
        if let Some(url) = address.url {
            about["url"] = url.into();
        }
        write_atomic(&self.server, format!("{about}\n").as_bytes(), Durability::Synced).map_err(
            |error| {
                ProjectError::InvalidInput(format!(
                    "cannot write {}: {error}",
                    self.server.display()
                ))
            },
        )
    }

    /// Removes `server.json`.
    pub fn unpublish(&self) {
        // A file that stays is harmless: commands check that the process is alive.
        let _ = fs::remove_file(&self.server);
    }
}

/// Reads a file that only its owner could read or write.
fn read_private(path: &Path) -> io::Result<String> {
    let about = fs::symlink_metadata(path)?;
    let own = about.uid() == fs::metadata("/proc/self")?.uid();
    if !about.is_file() || !own || about.permissions().mode() & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut text = String::new();
    File::open(path)?.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
