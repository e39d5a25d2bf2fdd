//! Names that change in one step of the file system, and never cost a file.
//!
//! Not every file system can do that: NFS, CIFS and some in user space know plain renames only. A new
//! name is given there by a link. Two files do not change places there at all, which can be found out
//! before.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Renames the file `from` to a name that nothing has.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unknown(error) => link_new(from, to),
        done => Ok(done?),
    }
}

/// The same by other means. Killed in between, the file has both names.
fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Puts `new` in the place of `old`. Says whether something was there: it has the other name then.
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

/// Whether files can change places where these two are, which they do.
pub(crate) fn can_exchange(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(error) if is_unknown(error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The file system, or the kernel, does not know such a rename.
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
