//! Atomic files in an open folder: written under a hidden name, synced, renamed. A kill leaves at
//! most a hidden file, which the next start removes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use antiphon_private_file::create_new_at;
use rustix::fs::{AtFlags, RenameFlags, fsync, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use crate::folder::file_state::FileState;
use crate::folder::name::{Temp, response_temp, temp};

/// Age at which a temporary file of a client counts as abandoned.
const LEFT_BEHIND_NS: i128 = 3_600_000_000_000;

/// Writes a response file atomically and durably, and replaces an existing file of that name.
pub(crate) fn write_response_file(folder: &OwnedFd, name: &str, text: &[u8]) -> io::Result<()> {
    let hidden = response_temp();
    let written = create_new_at(folder, &hidden, text).and_then(|_| {
        let renamed = match renameat(folder, &hidden, folder, name) {
            // A folder has that name: it is moved out of the way with its content.
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                renameat(folder, name, folder, format!("{name}.{}", uuid::Uuid::new_v4()))
                    .and_then(|()| renameat(folder, &hidden, folder, name))
            }
            renamed => renamed,
        };
        Ok(renamed?)
    });
    if written.is_err() {
        let _ = unlinkat(folder, &hidden, AtFlags::empty());
    }
    written?;
    Ok(fsync(folder)?)
}

/// Renames a file; fails with `EXIST` if the new name is taken.
pub(crate) fn rename_no_replace(
    from: &OwnedFd,
    old: &str,
    to: &OwnedFd,
    new: impl rustix::path::Arg + Copy,
) -> Result<(), Errno> {
    match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Some file systems cannot check and rename in one step.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(from, old, to, new),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}

/// Removes abandoned temporary files.
pub(crate) fn remove_leftovers(folder: &OwnedFd, names: &[OsString], now_ns: i128) {
    let age_ns = |name: &OsStr| {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(now_ns - FileState::of(&stat).modified_ns())
    };
    for name in names {
        let is_left = match temp(name.as_encoded_bytes()) {
            Some(Temp::Response) => true,
            Some(Temp::Drop) => age_ns(name).is_some_and(|age_ns| age_ns > LEFT_BEHIND_NS),
            None => false,
        };
        if is_left {
            // The next start tries again.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}
