//! Requests that lay in a project before anything was done in it: they may have come with a clone, and
//! are nobody's orders here. Their folder is moved aside, whatever its mode says, and its owner is told.
//! One that cannot be moved is an error, and nothing is begun.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::visible;
use antiphon_file_drop::Settings;

use crate::failure::Failure;
use crate::terminal;

/// What is put behind the name of a folder that is moved aside.
const ASIDE: &str = "before-first-start";

/// Folders that may have been moved aside before.
const ASIDE_MAX: u32 = 1000;

/// Moves the folders of requests aside that have anything in them. For a project without a journal, and
/// before there is one: from then on, what is in them is ours.
pub(crate) fn set_aside_brought(root: &Path, settings: &Settings) -> Result<(), Failure> {
    for folder in &settings.folders {
        let path = root.join(&folder.path);
        let refuse = |error: io::Error| {
            Failure::refused(format!(
                "{} was here before anything was done in this folder, and cannot be moved aside: {error}. \
                 Look at what is in it, and remove it",
                path.display()
            ))
        };
        if !is_used(root, &folder.path) || is_empty(&path).map_err(refuse)? {
            continue;
        }
        let aside = moved(&path).map_err(refuse)?;
        terminal::note(&visible(&format!(
            "{} was here before anything was done in this folder, and may have come with it: nothing in it \
             is carried out, and it is now {}. Look at it, and move what is yours in again\n",
            path.display(),
            aside.display()
        )));
    }
    Ok(())
}

/// Whether it is a folder that is reached without a link: no other is read.
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

/// Moves a folder to a name beside it that nobody has.
fn moved(folder: &Path) -> io::Result<PathBuf> {
    for number in 1..=ASIDE_MAX {
        let mut aside = folder.as_os_str().to_owned();
        aside.push(format!(".{ASIDE}"));
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        let aside = PathBuf::from(aside);
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(folder, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!("{ASIDE_MAX} were moved aside before")))
}
