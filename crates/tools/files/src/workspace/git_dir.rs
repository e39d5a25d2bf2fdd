//! Folders of git that are not called `.git`: bare repositories, and those that a file `.git` names.

use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

/// Names in a folder of git that decide which programs git runs.
const PROGRAMS: [&str; 9] = [
    "config",
    "config.worktree",
    "commondir",
    "hooks",
    "info",
    "modules",
    "worktrees",
    "remotes",
    "branches",
];

/// The folder of git that contains `path`, which is real and beneath `folder`.
pub(super) fn above(folder: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let first = path.components().next().map(Component::as_os_str);
    if PROGRAMS.iter().any(|name| first == Some((*name).as_ref())) && is_git(folder, Path::new(""))
    {
        return Some(PathBuf::from("."));
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.retain(|above| !above.as_os_str().is_empty() && above.parent().is_some());
    above.into_iter().find(|above| is_git(folder, above)).map(Path::to_owned)
}

/// Whether git takes a folder for one of its own.
fn is_git(folder: BorrowedFd<'_>, at: &Path) -> bool {
    let kind = |name: &str| {
        let stat = statat(folder, at.join(name), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    };
    let is_folder = |name| kind(name) == Some(FileType::Directory);
    kind("HEAD").is_some()
        && (is_folder("objects") && is_folder("refs") || kind("commondir").is_some())
}
