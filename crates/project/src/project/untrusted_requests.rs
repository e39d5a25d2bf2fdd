//! Requests in a project without a journal: they may have come with a clone, so they are
//! untrusted. Their folder is renamed, with any mode, and the user is warned. A folder that cannot be
//! renamed is an error, and no journal is created.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::visible;
use antiphon_file_drop::Settings;

use crate::environment::Warnings;
use crate::error::ProjectError;

/// Suffix of a folder that is set aside.
const SUFFIX: &str = "before-first-start";

/// Most folders that can be set aside.
const ASIDE_MAX: u32 = 1000;

/// Renames the request folders that are not empty. Called before the first journal of a project is created.
pub(super) fn set_aside(
    root: &Path,
    settings: &Settings,
    warnings: &Warnings,
) -> Result<(), ProjectError> {
    for folder in &settings.folders {
        let path = root.join(&folder.path);
        let refuse = |error: io::Error| {
            ProjectError::Refused(format!(
                "{} is older than the journal of this project and cannot be renamed: {error}. Check its \
                 contents, and remove it",
                path.display()
            ))
        };
        if !is_used(root, &folder.path) || is_empty(&path).map_err(refuse)? {
            continue;
        }
        let aside = moved(&path).map_err(refuse)?;
        warnings.report(&visible(&format!(
            "{} is older than the journal of this project and may have come with a clone: its requests are \
             not carried out. It is now {}. Check its contents, and move your own requests back",
            path.display(),
            aside.display()
        )));
    }
    Ok(())
}

/// Whether it is a folder, and no part of its path is a link.
fn is_used(root: &Path, below: &Path) -> bool {
    let mut path = root.to_owned();
    below.components().all(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir())
    })
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

/// Renames a folder to an unused name next to it.
fn moved(folder: &Path) -> io::Result<PathBuf> {
    for number in 1..=ASIDE_MAX {
        let mut aside = folder.as_os_str().to_owned();
        aside.push(format!(".{SUFFIX}"));
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        let aside = PathBuf::from(aside);
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(folder, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!("{ASIDE_MAX} folders were set aside before")))
}
