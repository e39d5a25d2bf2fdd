//! What a server leaves in the project's folder: the token, which stays, and where it listens,
//! which does not. Both are for their owner only.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use antiphon_interface_transport::Token;
use serde_json::json;

use crate::failure::Failure;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Longest file that is read as a token.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// Whose the folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folder {
    /// Something was done in it.
    Ours,
    /// Nothing was: whatever lies in it may have come with a clone.
    Fresh,
}

/// What a server leaves in the project's folder.
pub(super) struct ServerFiles {
    folder: PathBuf,
    token: PathBuf,
    server: PathBuf,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where<'a> {
    /// Its address, if it has one.
    pub(super) url: Option<&'a str>,
    /// Its socket, if it has one.
    pub(super) socket: Option<&'a Path>,
}

impl ServerFiles {
    pub(super) fn new(folder: &Path) -> Self {
        let (token, server) = (folder.join("token"), folder.join("server.json"));
        Self { folder: folder.to_owned(), token, server }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn token_path(&self) -> &Path {
        &self.token
    }

    /// The token: made once, and made anew when somebody else could know it.
    pub(super) fn token(&self, folder: Folder) -> Result<Token, Failure> {
        let refuse = |error: io::Error| {
            Failure::usage(format!("cannot use {}: {error}", self.token.display()))
        };
        let text = match read_private(&self.token) {
            Ok(text) if folder == Folder::Ours => text,
            Ok(_) | Err(_) => {
                let text = random().map_err(refuse)?;
                write_atomic(&self.token, format!("{text}\n").as_bytes(), Durability::Synced)
                    .map_err(refuse)?;
                text
            }
        };
        Token::new(text.trim().into()).map_err(|error| {
            let path = self.token.display();
            Failure::usage(format!("{path} holds no token: {error}; remove it for a new one"))
        })
    }

    /// Says where the server listens, for those who look for it.
    pub(super) fn publish(&self, at: Where<'_>) -> Result<(), Failure> {
        let mut about = json!({ "pid": std::process::id(), "socket": at.socket.is_some() });
        if let Some(url) = at.url {
            about["url"] = url.into();
        }
        write_atomic(&self.server, format!("{about}\n").as_bytes(), Durability::Synced).map_err(
            |error| Failure::usage(format!("cannot write {}: {error}", self.server.display())),
        )
    }

    /// Takes that back.
    pub(super) fn forget(&self) {
        // Whoever finds it finds nobody there, which is as good.
        let _ = fs::remove_file(&self.server);
    }
}

/// A file that only its owner could read or write.
fn read_private(path: &Path) -> Result<String, AccessError> {
    let mut text = String::new();
    private_file::open(path)?.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text)?;
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
