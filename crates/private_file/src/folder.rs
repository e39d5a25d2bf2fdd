//! Private folders.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::geteuid;

/// Creates a folder with mode 0700 and syncs its name, or checks the existing one: a symbolic link, another kind of file
/// and another user's folder are refused; access of other users is removed. Its parent must exist.
pub fn create_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        // A power failure must not take the folder and all that is synced in it.
        Ok(()) => File::open(parent_of(path))?.sync_all()?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let existing = fs::symlink_metadata(path)?;
    if !existing.is_dir() {
        return Err(io::Error::other("it is not a folder"));
    }
    if existing.uid() != geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if existing.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The folder of a file: `.` for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
