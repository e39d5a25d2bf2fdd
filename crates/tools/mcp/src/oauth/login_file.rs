//! The file of a login: its tokens and the id of this client, with mode 0600 in the user's state folder. Its name has a
//! digest of the server's address, so that a token is never sent to another address under the same name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_private_file::{
    Durability, create_folder, lock_within, open, open_lock_at, write_atomic,
};
use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use sha2::{Digest as _, Sha256};

use crate::config::ServerName;

/// Longest file of a login, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Bytes of the digest in the name of a file.
const DIGEST_BYTES: usize = 8;

/// How long another process may take to renew the same token.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// The file of a login, which may not exist.
#[derive(Debug, Clone)]
pub struct LoginFile {
    folder: PathBuf,
    name: String,
}

impl LoginFile {
    /// The file for a server in the folder of logins.
    pub fn new(folder: &Path, server: &ServerName, url: &Url) -> Self {
        let digest = Sha256::digest(url.as_str().as_bytes());
        let bytes = digest.iter().take(DIGEST_BYTES);
        let digest = bytes.fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        Self { folder: folder.to_owned(), name: format!("{server}-{digest}.json") }
    }

    /// Deletes the login. Returns whether there was one.
    pub fn delete(&self) -> io::Result<bool> {
        match std::fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a login.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        let path = self.path();
        if !path.exists() {
            return Ok(None);
        }
        let file = open(&path).map_err(|error| io::Error::other(error.to_string()))?;
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        serde_json::from_str(&text).map(Some).map_err(io::Error::other)
    }

    fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        create_folder(&self.folder)?;
        let text = serde_json::to_vec(credentials).map_err(io::Error::other)?;
        write_atomic(&self.path(), &text, Durability::Synced)
    }

    fn lock(&self) -> io::Result<File> {
        create_folder(&self.folder)?;
        let folder = File::open(&self.folder)?;
        let lock = open_lock_at(&folder, format!("{}.lock", self.name))?;
        lock_within(&lock, LOCK_WAIT).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(lock)
    }
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for LoginFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read().map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let file = self.clone();
        let saved = tokio::task::spawn_blocking(move || file.write(&credentials)).await;
        saved.map_err(failed)?.map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.delete().map(drop).map_err(failed)
    }

    /// A token is renewed by one process at a time: with most servers it can be renewed once.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.clone();
        let lock = tokio::task::spawn_blocking(move || file.lock()).await;
        let lock = lock.map_err(failed)?.map_err(failed)?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}
