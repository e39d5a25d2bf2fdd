//! Files that appear whole or not at all: written under a hidden name, made durable, renamed. What a
//! kill leaves behind is a hidden file that is taken away by whoever starts next.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fsync, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::name::{Temp, response_temp, temp};
use crate::stamp::Stamp;

/// How old a dropper's temporary file is before it counts as left behind.
const LEFT_BEHIND_NS: i128 = 3_600_000_000_000;

/// Writes a file that is there whole or not at all, and stays.
pub(crate) fn write_whole(folder: &OwnedFd, name: &str, text: &[u8]) -> io::Result<()> {
    let hidden = response_temp();
    let written = write_new(folder, &hidden, text).and_then(|()| {
        let renamed = match renameat(folder, &hidden, folder, name) {
            // A folder has that name: it is moved out of the way, whatever is in it.
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

/// Writes a file that is not there yet, for nobody else.
pub(crate) fn write_new(folder: &OwnedFd, name: &str, text: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text)?;
    file.sync_all()
}

/// Renames to a name that nobody has.
pub(crate) fn rename_if_free(
    from: &OwnedFd,
    old: &str,
    to: &OwnedFd,
    new: impl rustix::path::Arg + Copy,
) -> Result<(), Errno> {
    match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Not every file system can do both in one step.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(from, old, to, new),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}

/// Takes away what nobody will finish.
pub(crate) fn clean(folder: &OwnedFd, names: &[OsString], now_ns: i128) {
    let age_ns = |name: &OsStr| {
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(now_ns - Stamp::of(&about).modified_ns())
    };
    for name in names {
        let is_left = match temp(name.as_encoded_bytes()) {
            Some(Temp::Response) => true,
            Some(Temp::Drop) => age_ns(name).is_some_and(|age_ns| age_ns > LEFT_BEHIND_NS),
            None => false,
        };
        if is_left {
            // Tried again by whoever starts next.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}
