//! Reads the policy, if there is one. Only root may be able to change what is read: the folder and the file
//! belong to root, no other user can write them, and neither is a link.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

use super::FILE;
use crate::error::ProjectError;

/// Largest policy, in bytes.
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// Write access of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The text of the policy in `folder`; `None` when there is none. `owner` is the user who must own it.
pub(super) fn read(folder: &Path, owner: u32) -> Result<Option<String>, ProjectError> {
    let path = folder.join(FILE);
    let options = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match open(folder, options, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(refuse(folder, "is not a folder", "make it a folder of root, and no link"));
        }
        Err(error) => return Err(unreadable(folder, error)),
    };
    check_owner(folder, &opened, FileType::Directory, owner)?;
    let options = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&opened, FILE, options, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err(refuse(&path, "is a link", "put the file itself there"));
        }
        Err(error) => return Err(unreadable(&path, error)),
    };
    check_owner(&path, &file, FileType::RegularFile, owner)?;
    let mut text = String::new();
    let read = File::from(file).take(POLICY_BYTES_MAX + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > POLICY_BYTES_MAX => {
            let what = format!("has more than {POLICY_BYTES_MAX} bytes");
            Err(refuse(&path, &what, "shorten it"))
        }
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(refuse(&path, &format!("cannot be read: {error}"), "correct it")),
    }
}

fn check_owner(
    path: &Path,
    opened: &impl AsFd,
    kind: FileType,
    owner: u32,
) -> Result<(), ProjectError> {
    let about = fstat(opened).map_err(|error| unreadable(path, error))?;
    if FileType::from_raw_mode(about.st_mode) != kind {
        return Err(refuse(path, "is not a plain file", "put a file there"));
    }
    if about.st_uid != owner {
        let what = format!("belongs to user {} and not to root", about.st_uid);
        return Err(refuse(path, &what, &format!("run `chown root:root {}`", path.display())));
    }
    if about.st_mode & WRITABLE_BY_OTHERS != 0 {
        let what = "can be changed by other users than root";
        return Err(refuse(path, what, &format!("run `chmod go-w {}`", path.display())));
    }
    Ok(())
}

fn unreadable(path: &Path, error: Errno) -> ProjectError {
    let advice = format!("let every user read it: `chmod go+rX {}`", path.display());
    refuse(path, &format!("cannot be read: {error}"), &advice)
}

fn refuse(path: &Path, what: &str, advice: &str) -> ProjectError {
    ProjectError::Refused(format!(
        "the policy of this machine cannot be used, so nothing runs: {} {what}. Ask its administrator to {advice}",
        path.display()
    ))
}
