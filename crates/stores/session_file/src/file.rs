//! Session files on disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use antiphon_core::Session;
use antiphon_private_file::{Durability, write_atomic};

use crate::format::{self, FormatError};

/// Largest session file that is read or written.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why a session file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is not there, or not for us.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder, a device, a pipe.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// Over [`FILE_BYTES_MAX`].
    #[error("{} has {bytes} bytes, a session file may have {FILE_BYTES_MAX}", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Not text.
    #[error("{} is not UTF-8: byte {offset} is invalid", path.display())]
    NotUtf8 {
        /// Which file.
        path: PathBuf,
        /// Where the first invalid byte is.
        offset: usize,
    },
    /// Text, but no session.
    #[error("{}: {source}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
}

/// Why a session file could not be written. The old one, if there was one, is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The disk is full, the folder is missing or not for us.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It could not be read again.
    #[error("the session takes {bytes} bytes, a session file may have {FILE_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
}

/// Reads a session file.
pub fn load(path: &Path) -> Result<Session, LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    // Looked at before it is opened: opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(LoadError::NotAFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(LoadError::TooLarge { path: path.to_owned(), bytes });
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(unreadable)?;
    let text = String::from_utf8(content).map_err(|error| LoadError::NotUtf8 {
        path: path.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })?;
    format::parse(&text).map_err(|source| LoadError::Format { path: path.to_owned(), source })
}

/// Writes a session file, readable by its owner alone, in place of what is there.
pub fn save(path: &Path, session: &Session) -> Result<(), SaveError> {
    let unwritable = |source| SaveError::Unwritable { path: path.to_owned(), source };
    let text = format::to_json(session).map_err(|error| unwritable(error.into()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(SaveError::TooLarge { bytes: text.len() as u64 });
    }
    write_atomic(path, text.as_bytes(), Durability::Synced).map_err(unwritable)
}
