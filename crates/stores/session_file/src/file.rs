//! Session files on disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use antiphon_core::Session;
use antiphon_private_file::{Durability, write_atomic};

use crate::format::{self, FormatError};

/// Largest session file, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why a session file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file does not exist or may not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// The path is a folder, a device or a pipe.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Over [`FILE_BYTES_MAX`].
    #[error("{} has {bytes} bytes, a session file may have {FILE_BYTES_MAX}", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file, in bytes.
        bytes: u64,
    },
    /// The file is not text.
    #[error("{} is not UTF-8: byte {offset} is invalid", path.display())]
    NotUtf8 {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The text is not a session.
    #[error("{}: {source}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with the text.
        source: FormatError,
    },
}

/// Why a session file could not be written. An existing file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The disk is full, or the folder is missing or may not be written to.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// The file would be too large to be read again.
    #[error("the session takes {bytes} bytes, a session file may have {FILE_BYTES_MAX}")]
    TooLarge {
        /// Size of the text, in bytes.
        bytes: u64,
    },
}

/// Reads a session file.
pub fn load(path: &Path) -> Result<Session, LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    // Checked before opening: opening a pipe would wait for its writer.
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

/// Writes a session file, readable by its owner alone, and replaces an existing one.
pub fn save(path: &Path, session: &Session) -> Result<(), SaveError> {
    let unwritable = |source| SaveError::Unwritable { path: path.to_owned(), source };
    let text = format::to_json(session).map_err(|error| unwritable(error.into()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(SaveError::TooLarge { bytes: text.len() as u64 });
    }
    write_atomic(path, text.as_bytes(), Durability::Synced).map_err(unwritable)
}
