//! Files of a server in the state folder of its project: its token, which stays, and `server.json` with its address,
//! which is removed when it stops. Only their owner can read them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use antiphon_private_file::{Durability, open, write_atomic};
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
        match self.read_token() {
            Ok(text) => return Ok(text.trim().into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Other users could have read it, or it is no file of this user.
            Err(_) => fs::remove_file(&self.token).map_err(refuse)?,
        }
        self.create_token().map_err(refuse)?;
        let text = self.read_token().map_err(refuse)?;
        Ok(text.trim().into())
    }

    fn read_token(&self) -> io::Result<String> {
        let mut text = String::new();
        open(&self.token)?.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes a new token, unless another process has written one meanwhile: all use the first.
    fn create_token(&self) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        writeln!(file, "{}", random()?)?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(&self.token) {
            Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
            Ok(_) | Err(_) => Ok(()),
        }
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
        // A file that stays is harmless: commands check that the process still runs.
        let _ = fs::remove_file(&self.server);
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn processes_that_start_at_once_use_one_token() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let token = || ServerFiles::new(folder.path()).token().unwrap();
            let tokens: BTreeSet<String> = std::thread::scope(|threads| {
                let started: Vec<_> = (0..8).map(|_| threads.spawn(token)).collect();
                let tokens = started.into_iter().map(|thread| thread.join().unwrap());
                tokens.map(|token| token.expose_secret().to_owned()).collect()
            });
            assert_eq!(tokens.len(), 1, "{tokens:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        }
    }
}
