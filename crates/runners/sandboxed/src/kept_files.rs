//! Small files that outlive their worker: the next worker of the same task gets them. So a call that was cut off is
//! reported with what is known about it.
//!
//! Commands in the sandbox can write these files. Outside of the sandbox nothing reads them: they are moved, and only
//! regular files of bounded number and size.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::TaskId;
use serde::{Deserialize, Serialize};

use crate::settings::SandboxRunnerSettings;

/// Files of one worker that are kept, at most.
const FILES_MAX: usize = 64;

/// Longest file that is kept, in bytes.
const FILE_BYTES_MAX: u64 = 512 * 1024;

/// Age after which kept files are removed, whatever became of their task.
const KEPT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// First part of the name of each folder with kept files.
const PREFIX: &str = "kept-";

/// Longest id of a task whose files are kept, in bytes.
const ID_BYTES_MAX: usize = 64;

/// Where files of the worker of one task are, and where they are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptFiles {
    /// Below the worker's `/tmp`.
    inside: PathBuf,
    /// Outside of the sandbox.
    folder: PathBuf,
}

impl KeptFiles {
    /// The files of a task; `None` when none are to be kept, or its id is no name of a folder.
    pub(crate) fn of(settings: &SandboxRunnerSettings, task_id: &TaskId) -> Option<Self> {
        let inside = settings.kept.clone()?;
        let id = task_id.as_str();
        let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let folder = settings.policy.tmp.join(format!("{PREFIX}{id}"));
        (plain && id.len() <= ID_BYTES_MAX).then_some(Self { inside, folder })
    }

    /// Gives kept files to a new worker.
    pub(crate) fn restore(&self, tmp: &Path) -> io::Result<()> {
        if !is_folder(&self.folder) {
            return Ok(());
        }
        let inside = tmp.join(&self.inside);
        if let Some(parent) = inside.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        fs::rename(&self.folder, inside)
    }

    /// Keeps the files of a worker that has ended. What cannot be moved is lost with the worker.
    pub(crate) fn save(&self, tmp: &Path) {
        // A link could lead out of the sandbox.
        let mut inside = tmp.to_owned();
        for part in &self.inside {
            inside.push(part);
            if !is_folder(&inside) {
                return;
            }
        }
        let Ok(entries) = fs::read_dir(&inside) else { return };
        let small = entries.flatten().filter(|entry| {
            entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX)
        });
        for entry in small.take(FILES_MAX) {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
            let _ = fs::rename(entry.path(), self.folder.join(entry.file_name()));
        }
    }
}

/// Removes very old files of tasks that no worker took up again.
pub(crate) fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_kept = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let written = entry.metadata().and_then(|found| found.modified());
        let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_MAX));
        if is_kept && is_old {
            // If it cannot be removed now, the next process tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this is a folder, and no link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
