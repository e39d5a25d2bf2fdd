//! The remotes of the project's repository.
//!
//! Git takes a name that is no remote as a folder, and runs the hooks of the repository there. An agent
//! can make such a folder, but not a remote: `.git` is protected. A repository that cannot be read has
//! no remotes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of the settings that are read; remotes behind them are not known.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The names of the remotes that the repository in the folder `root` has.
pub(crate) fn remotes(root: &Path) -> Vec<String> {
    let git = root.join(".git");
    let common = if git.is_dir() { Some(git) } else { common_folder(root, &git) };
    let config = common.and_then(|folder| read(&folder.join("config"))).unwrap_or_default();
    let name = |line: &str| {
        let name = line.trim().strip_prefix("[remote \"")?.strip_suffix("\"]")?;
        (!name.contains(['"', '\\'])).then(|| name.to_owned())
    };
    config.lines().filter_map(name).collect()
}

/// The folder of the settings, if `git` is the pointer of a linked worktree.
fn common_folder(root: &Path, git: &Path) -> Option<PathBuf> {
    let pointer = read(git)?;
    let folder = root.join(pointer.strip_prefix("gitdir:")?.trim());
    match read(&folder.join("commondir")) {
        Some(common) => Some(folder.join(common.trim())),
        None => Some(folder),
    }
}

fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
    let mut text = String::new();
    file.take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}
