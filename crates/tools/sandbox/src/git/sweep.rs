//! Leftovers of commands in a repository that mislead git outside of the sandbox: links, named
//! pipes and the like in place of its files, and programs in the steps of a rebase.
//!
//! All of it works with the descriptors that were opened before the first command ran. So nothing
//! outside of these folders is changed, whatever has taken their place or that of the folders above.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, renameat, statat, unlinkat,
};

use crate::pinned_folder::open_in;
use crate::repository::Repository;

/// The steps of a rebase, which may name programs.
const STEPS: [&str; 2] = ["git-rebase-todo", "git-rebase-todo.backup"];

/// Longest list of steps that is kept, in bytes.
const STEPS_BYTES_MAX: u64 = 8 << 20;

/// The links and other entries of a repository that are neither files nor folders.
#[derive(Debug, Default)]
pub(crate) struct Irregular(BTreeSet<Entry>);

/// An entry of a writable folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Which of the writable folders has it.
    folder: usize,
    path: PathBuf,
    /// Where it leads, if it is a link.
    to: Option<Vec<u8>>,
}

impl Irregular {
    /// Looks through the writable folders of a repository.
    pub(crate) fn of(repository: &Repository) -> io::Result<Self> {
        let mut found = BTreeSet::new();
        for (folder, pinned) in repository.writable.iter().enumerate() {
            let kept = if folder == 0 { repository.kept.as_slice() } else { &[] };
            find(&pinned.fd, kept, &mut |path, to| {
                found.insert(Entry { folder, path, to });
            })?;
        }
        Ok(Self(found))
    }

    /// Removes what has been added to these entries, and programs from the steps of a rebase.
    /// Called from outside, after the last process has ended.
    pub(crate) fn sweep(&self, repository: &Repository) {
        // What can be read is swept, even if a part of it cannot.
        let now = Self::of(repository).unwrap_or_default();
        for entry in now.0.difference(&self.0) {
            let Some(folder) = repository.writable.get(entry.folder) else { continue };
            let _ = remove(&folder.fd, &entry.path, entry.folder == 0);
        }
        let git_dir = repository.writable.first();
        let rebase = git_dir.and_then(|git_dir| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            open_in(&git_dir.fd, Path::new("rebase-merge"), flags).ok()
        });
        for name in STEPS {
            if let Some(folder) = &rebase
                && drop_programs(folder, name).is_err()
            {
                let _ = unlinkat(folder, name, AtFlags::empty());
            }
        }
    }
}

/// Calls `found` for every entry that is neither a file nor a folder. `kept` are names in the folder
/// itself that are left out.
fn find(
    folder: &OwnedFd,
    kept: &[&str],
    found: &mut impl FnMut(PathBuf, Option<Vec<u8>>),
) -> io::Result<()> {
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(at) = folders.pop_front() {
        let here = if at.as_os_str().is_empty() { Path::new(".") } else { &at };
        // One that vanishes or cannot be read has no entries for git either.
        let Ok(fd) = open_in(folder, here, OFlags::RDONLY | OFlags::DIRECTORY) else { continue };
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_kept = at.as_os_str().is_empty() && kept.iter().any(|kept| name == *kept);
            if name == "." || name == ".." || is_kept {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let found = statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                kind = found.map_or(kind, |found| FileType::from_raw_mode(found.st_mode));
            }
            if kind == FileType::Directory {
                folders.push_back(at.join(name));
            } else if kind != FileType::RegularFile {
                let to = readlinkat(&fd, entry.file_name(), Vec::new()).ok();
                found(at.join(name), to.map(std::ffi::CString::into_bytes));
            }
        }
    }
    Ok(())
}

fn remove(folder: &OwnedFd, path: &Path, is_git_dir: bool) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above =
        open_in(folder, above.unwrap_or(Path::new(".")), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let name = path.file_name().unwrap_or_default();
    // Old versions of git keep `HEAD` as a link to a branch.
    if is_git_dir && path == Path::new("HEAD") {
        let to = readlinkat(&above, name, Vec::new())?;
        let names_branch = to.to_bytes().starts_with(b"refs/heads/");
        if names_branch && !to.to_bytes().split(|byte| *byte == b'/').any(|part| part == b"..") {
            return Ok(());
        }
    }
    Ok(unlinkat(&above, name, AtFlags::empty())?)
}

/// Removes the lines of a rebase that run programs. An error leaves the file as it was.
fn drop_programs(folder: &OwnedFd, name: &str) -> io::Result<()> {
    let file = match open_in(folder, Path::new(name), OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > STEPS_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = Vec::new();
    file.take(STEPS_BYTES_MAX).read_to_end(&mut text)?;
    let kept: Vec<&[u8]> =
        text.split_inclusive(|byte| *byte == b'\n').filter(|line| !runs_program(line)).collect();
    let kept = kept.concat();
    if kept == text {
        return Ok(());
    }
    let new = format!("{name}.antiphon");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, new.as_str(), flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(&kept)?;
    Ok(renameat(folder, new.as_str(), folder, name)?)
}

fn runs_program(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    matches!(words.next(), Some(b"exec" | b"x"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::pinned_folder::PinnedFolder;

    fn repository(git: &Path) -> Repository {
        for name in ["objects", "refs/heads", "logs", "rebase-merge", "hooks"] {
            fs::create_dir_all(git.join(name)).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let opened = PinnedFolder::open(git.parent().unwrap(), git.to_owned()).unwrap();
        let work_tree = git.parent().unwrap().to_owned();
        let (root, writable) = (work_tree.clone(), vec![opened]);
        Repository { root, work_tree, writable, kept: vec!["hooks"] }
    }

    fn is_there(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    #[test]
    fn what_is_neither_file_nor_folder_is_removed_if_it_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().canonicalize().unwrap().join(".git");
        let repository = repository(&git);
        symlink("/usr/share/x", git.join("mine")).unwrap();
        symlink("/usr/share/x", git.join("hooks/mine")).unwrap();
        let before = Irregular::of(&repository).unwrap();
        fs::write(git.join("refs/heads/main"), "0\n").unwrap();
        let new = ["index", "COMMIT_EDITMSG", "refs/heads/evil", "objects/ab", "logs/pipe"];
        for (name, to) in new.iter().zip(["/etc/passwd", "refs/../config", "refs/x", "..", ""]) {
            if to.is_empty() {
                let pipe = FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, git.join(name), pipe, 0o644.into(), 0)
                    .unwrap();
            } else {
                symlink(to, git.join(name)).unwrap();
            }
        }
        before.sweep(&repository);
        for name in new {
            assert!(!is_there(&git.join(name)), "{name}");
        }
        for name in ["mine", "hooks/mine", "refs/heads/main", "HEAD"] {
            assert!(is_there(&git.join(name)), "{name}");
        }
        // A link that was replaced is a new one.
        fs::remove_file(git.join("mine")).unwrap();
        fs::write(git.join("other"), "").unwrap();
        symlink("config", git.join("mine")).unwrap();
        fs::remove_file(git.join("HEAD")).unwrap();
        symlink("refs/heads/main", git.join("HEAD")).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&git.join("mine")) && is_there(&git.join("HEAD")));
        fs::remove_file(git.join("HEAD")).unwrap();
        symlink("refs/heads/../../config", git.join("HEAD")).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&git.join("HEAD")));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let git = base.join("tree/.git");
        let repository = repository(&git);
        let before = Irregular::of(&repository).unwrap();
        let victim = base.join("victim");
        fs::create_dir_all(victim.join(".git/rebase-merge")).unwrap();
        let (link, todo) =
            (victim.join(".git/tool"), victim.join(".git/rebase-merge/git-rebase-todo"));
        symlink("/usr/bin/true", &link).unwrap();
        fs::write(&todo, "exec mine\n").unwrap();
        // A file of the repository leads there, then a folder of it, then the folder above it.
        let steps = git.join("rebase-merge/git-rebase-todo");
        symlink(&todo, &steps).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&steps));
        fs::remove_dir(git.join("rebase-merge")).unwrap();
        symlink(todo.parent().unwrap(), git.join("rebase-merge")).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&git.join("rebase-merge")));
        fs::rename(base.join("tree"), base.join("away")).unwrap();
        symlink(&victim, base.join("tree")).unwrap();
        symlink("/etc/passwd", base.join("away/.git/index")).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&base.join("away/.git/index")));
        assert!(is_there(&link));
        assert_eq!(fs::read_to_string(todo).unwrap(), "exec mine\n");
    }

    #[test]
    fn steps_that_run_programs_are_dropped_whatever_else_the_file_has() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().canonicalize().unwrap().join(".git");
        let repository = repository(&git);
        let before = Irregular::of(&repository).unwrap();
        let todo = git.join("rebase-merge/git-rebase-todo");
        let steps = b"pick 1\nexec evil\n\t x evil\n\xff \xfe\nx\tevil\npick 2 exec\nexec last";
        fs::write(&todo, steps).unwrap();
        before.sweep(&repository);
        assert_eq!(fs::read(&todo).unwrap(), b"pick 1\n\xff \xfe\npick 2 exec\n");
        fs::remove_file(&todo).unwrap();
        let pipe = FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &todo, pipe, 0o644.into(), 0).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&todo));
        File::create(&todo).unwrap().set_len(STEPS_BYTES_MAX + 1).unwrap();
        before.sweep(&repository);
        assert!(!is_there(&todo));
    }
}
