//! Atomic renames that never overwrite a file.
//!
//! Not every file system can do that: NFS, CIFS and some FUSE file systems know plain renames only.
//! There, a hard link gives a new name. Two files cannot be exchanged there; [`can_exchange`] finds
//! out first.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Renames the file `from` to `to`, which must not exist.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unknown(error) => link_new(from, to),
        done => Ok(done?),
    }
}

/// The same with a hard link. Killed in between, the file has both names.
fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Puts `new` in the place of `old`. Returns whether `old` existed: it is at `new` then.
pub(crate) fn exchange(old: &Path, new: &Path) -> io::Result<bool> {
    match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => rename_new(new, old).map(|()| false),
        Err(error) if is_unknown(error) && fs::symlink_metadata(old).is_err() => {
            rename_new(new, old).map(|()| false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Exchanges two files. Returns whether the file system can do that.
pub(crate) fn can_exchange(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(error) if is_unknown(error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file system or the kernel does not support such a rename.
fn is_unknown(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_never_costs_a_file_whichever_way_it_is_given() {
        for give in [rename_new, link_new] {
            let folder = tempfile::tempdir().expect("a folder");
            let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
            fs::write(&from, "new").expect("a file");
            fs::write(&to, "old").expect("a file");
            let error = give(&from, &to).expect_err("it is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            let texts = [&from, &to].map(|path| fs::read_to_string(path).expect("a file"));
            assert_eq!(texts, ["new", "old"]);
            fs::remove_file(&to).expect("a file");
            give(&from, &to).expect("a name");
            assert_eq!(fs::read_to_string(&to).expect("a file"), "new");
            assert!(!from.exists());
        }
    }
}
