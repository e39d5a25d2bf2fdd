//! The files that are open, and whether they are still the ones at their paths.
//!
//! A file that is deleted or replaced stays open, and what is written to it is lost with the
//! process. A look costs two `stat` calls: no read, no sync.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::backup::with_suffix;

/// Device and number of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self { device: about.dev(), inode: about.ino() })
    }
}

/// The file of a journal and its log, as they were opened.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    path: PathBuf,
    log: PathBuf,
    database_id: FileId,
    log_id: FileId,
}

impl OpenFile {
    /// The files that a connection to `path` has just opened. Its log must exist.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let log = with_suffix(path, "-wal");
        let (database_id, log_id) = (FileId::of(path)?, FileId::of(&log)?);
        Ok(Self { path: path.to_owned(), log, database_id, log_id })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What happened to the files at their paths; `None` when they are the open ones.
    pub(crate) fn fault(&self) -> Option<String> {
        let fault = |path: &Path, opened: FileId| match FileId::of(path) {
            Ok(found) if found == opened => None,
            Ok(_) => Some(format!("{} was replaced by another file", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(format!("{} was deleted or moved", path.display()))
            }
            Err(error) => Some(format!("{} cannot be found: {error}", path.display())),
        };
        fault(&self.path, self.database_id).or_else(|| fault(&self.log, self.log_id))
    }
}
