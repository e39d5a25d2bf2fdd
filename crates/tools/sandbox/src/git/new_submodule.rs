//! Repositories that became submodules while git could write: `git add` of a folder is enough.
//!
//! Git at the top of a work tree enters its submodules and obeys their settings and hooks, and a
//! command may have written those. So afterwards the `.git` of a new submodule is renamed, unless
//! everything in it that could make git run a program is as git itself makes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, RenameFlags, renameat_with, statat};

use crate::git_dir::pointed_to;
use crate::gitlink::gitlinks;
use crate::pinned_folder::{open_below, open_in};
use crate::repository::Repository;

/// The name that a `.git` gets.
pub(crate) const SET_ASIDE: &str = ".git.set-aside";

/// Most submodules that are looked at after a command. A repository with more new ones has been made
/// for that.
const SUBMODULES_MAX: usize = 10_000;

/// Longest settings that are read, in bytes. Longer ones are not as git makes them.
const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// Settings that start no program, as `git init`, `git clone` and `git config` of a name write them.
const HARMLESS: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
            "autocrlf",
            "eol",
        ],
    ),
    ("remote", &["url", "pushurl", "fetch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("submodule", &["url", "active"]),
    ("extensions", &["objectformat", "refstorage"]),
];

/// The submodules of a work tree before git could write.
#[derive(Debug)]
pub(crate) struct Submodules(BTreeSet<PathBuf>);

impl Submodules {
    pub(crate) fn of(repository: &Repository) -> Self {
        Self(gitlinks(&repository.work_tree).into_iter().collect())
    }

    /// Renames the `.git` of every submodule that was added since, unless it is harmless.
    pub(crate) fn set_aside_new(&self, repository: &Repository) {
        let mut folders = gitlinks(&repository.work_tree);
        folders.retain(|folder| !self.0.contains(folder));
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            if next > SUBMODULES_MAX {
                return;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            // Git does not enter a folder behind a link either.
            let Ok(fd) = open_below(&repository.root, &folder, flags) else { continue };
            if is_harmless(repository, &folder, &fd) {
                folders.extend(gitlinks(&folder));
            } else {
                set_aside(&fd);
            }
        }
    }
}

fn set_aside(folder: &OwnedFd) {
    for number in 0..100 {
        let name = if number == 0 { SET_ASIDE.to_owned() } else { format!("{SET_ASIDE}.{number}") };
        let moved = renameat_with(folder, ".git", folder, name.as_str(), RenameFlags::NOREPLACE);
        if moved != Err(rustix::io::Errno::EXIST) {
            return;
        }
    }
}

fn is_harmless(repository: &Repository, path: &Path, folder: &OwnedFd) -> bool {
    match kind(folder, ".git") {
        None => true,
        Some(FileType::Directory) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            open_in(folder, Path::new(".git"), flags).is_ok_and(|git_dir| is_as_made(&git_dir))
        }
        // Commands cannot write to the repositories that git keeps in its own folder.
        Some(FileType::RegularFile) => pointed_to(&path.join(".git")).is_some_and(|git_dir| {
            let own = repository.writable.first().map(|folder| folder.path.join("modules"));
            own.is_some_and(|own| git_dir.starts_with(own))
        }),
        Some(_) => false,
    }
}

/// Whether what decides about programs is as git makes it.
fn is_as_made(git_dir: &OwnedFd) -> bool {
    let absent = |name: &str| kind(git_dir, name).is_none();
    let hooks = match kind(git_dir, "hooks") {
        None => true,
        Some(_) => only_samples(git_dir).unwrap_or(false),
    };
    let config = match kind(git_dir, "config") {
        None => true,
        Some(_) => config(git_dir).is_ok_and(|text| starts_no_program(&text)),
    };
    absent("commondir") && absent("config.worktree") && hooks && config
}

fn only_samples(git_dir: &OwnedFd) -> io::Result<bool> {
    let hooks = open_in(git_dir, Path::new("hooks"), OFlags::RDONLY | OFlags::DIRECTORY)?;
    for entry in Dir::read_from(&hooks)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if !matches!(name.as_slice(), b"." | b"..") && !name.ends_with(b".sample") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn config(git_dir: &OwnedFd) -> io::Result<String> {
    let file = File::from(open_in(git_dir, Path::new("config"), OFlags::RDONLY)?);
    let found = file.metadata()?;
    if !found.is_file() || found.len() > CONFIG_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(CONFIG_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether a text has nothing but settings that are known to be harmless, each on a line of its own.
fn starts_no_program(config: &str) -> bool {
    let mut known: &[&str] = &[];
    config.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(section) = line.strip_prefix('[') {
            let name = section.split([' ', '"', ']', '.']).next().unwrap_or_default();
            let section = HARMLESS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known = section.map_or(&[], |(_, keys)| keys);
            // A setting may follow on the same line.
            return section_is_whole(line) && !known.is_empty();
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default();
        // A line may be continued, and the next one would be read as a setting.
        !line.ends_with('\\') && known.iter().any(|known| known.eq_ignore_ascii_case(key))
    })
}

fn section_is_whole(line: &str) -> bool {
    line.ends_with(']') && line.matches(']').count() == 1 && !line.contains('\\')
}

fn kind(folder: &OwnedFd, name: &str) -> Option<FileType> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_git_writes_itself_are_harmless() {
        for config in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[remote \"origin\"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n# text\n[user]\nname=a\n",
        ] {
            assert!(starts_no_program(config), "{config}");
        }
        for config in [
            "fsmonitor = x",
            "[core]\n\tfsmonitor = evil\n",
            "[core]\n\tFSMonitor=evil\n",
            "[core] fsmonitor = evil\n",
            "[core]fsmonitor = evil ]\n",
            "[core]\nbare = false \\\n\nfsmonitor = evil",
            "[include]\n\tpath = ../evil\n",
            "[filter \"x\"]\n\tclean = evil\n",
            "[remote \"x\"]\n\tuploadpack = evil\n",
            "[core.x]\nhookspath = x",
            "[user]\n[alias]\nname = !evil\n",
        ] {
            assert!(!starts_no_program(config), "{config}");
        }
    }
}
