//! Rescues a journal whose file was deleted or replaced while it is open: copies what is open, the log
//! included, to a new file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::backup::snapshot::copy_pages;
use crate::backup::staging_folder::{folder_of, sync_folder};
use crate::backup::with_suffix;
use crate::journal::connect;

/// Names that are tried in one folder.
const NAMES_MAX: u32 = 100;

/// Copies the open journal to `PATH.rescued-N`, or into the folder for temporary files when that
/// folder is gone. Returns where it is.
pub(crate) fn rescue(open: &mut Connection, path: &Path) -> Result<PathBuf, String> {
    let beside = create_beside(path);
    let (file, target) = match beside {
        Ok(created) => created,
        Err(_) => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            create_beside(&std::env::temp_dir().join(name)).map_err(|error| error.to_string())?
        }
    };
    copy(open, &file, &target).inspect_err(|_| {
        // It is incomplete.
        let _ = std::fs::remove_file(&target);
    })?;
    Ok(target)
}

fn copy(open: &mut Connection, file: &File, target: &Path) -> Result<(), String> {
    let text = |error: rusqlite::Error| error.to_string();
    let mut copy = connect(target, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(text)?;
    // Synced once, when it is complete.
    copy.pragma_update(None, "synchronous", "OFF").map_err(text)?;
    copy_pages(open, &mut copy, &mut |_| {}).map_err(text)?;
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(text)?;
    drop(copy);
    let synced = file.sync_all().and_then(|()| sync_folder(folder_of(target)));
    synced.map_err(|error| error.to_string())
}

/// A new file that only its owner can read.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1..=NAMES_MAX {
        let target = with_suffix(path, &format!(".rescued-{number}"));
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o600).open(&target) {
            Ok(file) => return Ok((file, target)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many rescued journals: remove some"))
}
