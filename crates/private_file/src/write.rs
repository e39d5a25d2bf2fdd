//! Atomic writes: a new file beside the old one, then a rename.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fchmod, openat};
use tempfile::NamedTempFile;

use crate::folder::parent_of;

/// What a power failure may undo after [`write_atomic`] has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: content and name are on disk.
    Synced,
    /// The write: for a cache that can be built again.
    Buffered,
}

/// Replaces a file, or creates it, with mode 0600. A reader sees the old content or the new content.
/// A symbolic link at `path` is replaced, not followed. The folder must exist.
///
/// After an error the file has its old content, or the new content if only the sync of the folder failed.
pub fn write_atomic(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = parent_of(path);
    // Created with mode 0600, under a name that cannot be guessed, and removed if this fails.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    match durability {
        Durability::Synced => file.as_file().sync_all()?,
        Durability::Buffered => file.flush()?,
    }
    file.persist(path).map_err(|error| error.error)?;
    match durability {
        Durability::Synced => File::open(folder)?.sync_all(),
        Durability::Buffered => Ok(()),
    }
}

/// Creates a file with mode 0600 in an open folder and syncs its content. Fails with `AlreadyExists` if
/// the name is taken, also by a symbolic link. The name itself is durable when the folder is synced.
pub fn create_new_at(
    folder: impl AsFd,
    name: impl rustix::path::Arg,
    bytes: &[u8],
) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner_only = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(openat(folder, name, flags, owner_only)?);
    // A umask may have removed bits of the owner.
    fchmod(&file, owner_only)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}
