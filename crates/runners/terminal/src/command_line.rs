//! Finds the program of a command. A missing program is reported before anything is started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The path of a program. A name with a slash is a path from `root`; any other is searched in
/// `path`, without its relative entries: they lead into the working folder.
pub(crate) fn resolve(program: &str, path: &OsStr, root: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let found = root.join(program);
        if can_run(&found) {
            return Ok(found);
        }
        return Err(format!("`{}` is not a program that can be run", found.display()));
    }
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| Some(folder.join(program)).filter(|it| can_run(it)));
    found.ok_or_else(|| {
        format!("the program `{program}` is not installed: install it, or change the profile")
    })
}

fn can_run(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
