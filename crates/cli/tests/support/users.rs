//! The users that a test can be, and folders that each of them can reach.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part; a test fails by panicking"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An ordinary user: `nobody`.
const ORDINARY: u32 = 65534;

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The users to test as: the user of the test (`None`), and an ordinary one if that is root. Where other users
/// cannot enter the root of the file system, an ordinary user cannot even load a library.
pub(crate) fn all() -> Vec<Option<u32>> {
    if is_root() && is_open(Path::new("/")) { vec![None, Some(ORDINARY)] } else { vec![None] }
}

/// A new folder that the user can reach. Not below `/tmp`, where the sandbox has a folder of its own.
pub(crate) fn folder_of(user: Option<u32>) -> tempfile::TempDir {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let near = if user.is_some() && !is_open(built) { Path::new("/srv") } else { built };
    tempfile::Builder::new().tempdir_in(near).unwrap()
}

/// Whether other users can go through all folders to this one.
fn is_open(folder: &Path) -> bool {
    folder.ancestors().all(|part| fs::metadata(part).is_ok_and(|about| about.mode() & 0o001 != 0))
}
