//! Files with the output of a task's commands that is too long to be shown.
//!
//! One folder for each task, one file for each command: `read_result` finds them by name.

use std::fmt::Write;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use antiphon_core::TaskId;

use crate::output_reader::OUTPUT_BYTES_MAX;

/// Most that is stored for one task, in bytes. Beyond it, the oldest files are removed.
const TASK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The file that notes that a command went on in the background. No result has such a name.
const BACKGROUND: &str = ".background";

/// The result files of one task.
#[derive(Debug, Clone)]
pub(crate) struct ResultFiles {
    folder: PathBuf,
}

impl ResultFiles {
    /// The files of `task_id`, in a folder below `folder` that is created when it is needed.
    pub(crate) fn of(folder: &Path, task_id: &TaskId) -> Self {
        Self { folder: folder.join(plain_name(task_id.as_str())) }
    }

    /// Creates a new file, and removes old files to make space for it. Blocks.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.free_space()?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(0o600);
        options.open(self.folder.join(name))
    }

    /// Notes that a command of the task went on in the background. Blocks.
    pub(crate) fn note_background(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(self.folder.join(BACKGROUND)).map(drop)
    }

    /// Whether a command of the task ever went on in the background.
    pub(crate) fn has_background(&self) -> bool {
        self.folder.join(BACKGROUND).exists()
    }

    /// Makes a file durable: its content, its name, and the folder of the task. Blocks.
    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()?;
        for folder in self.folder.ancestors().take(2) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    fn free_space(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let found = entry.metadata()?;
            if found.is_file() {
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        files.sort();
        let mut used: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if used + OUTPUT_BYTES_MAX <= TASK_BYTES_MAX {
                break;
            }
            fs::remove_file(path)?;
            used -= bytes;
        }
        Ok(())
    }
}

/// An id as a folder name: bytes other than letters, digits, `-` and `_` become `%` and their code.
fn plain_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_a_path_stays_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultFiles::of(folder.path(), &TaskId::parse("../a/b.c").unwrap());
        results.create("output").unwrap();
        assert!(folder.path().join("%2e%2e%2fa%2fb%2ec/output").is_file());
    }

    #[test]
    fn the_oldest_files_are_removed_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultFiles::of(folder.path(), &TaskId::parse("task").unwrap());
        for name in ["one", "two", "three", "four"] {
            // A sparse file: only its length counts.
            results.create(name).unwrap().set_len(OUTPUT_BYTES_MAX).unwrap();
        }
        results.create("five").unwrap();
        let left = |name: &str| folder.path().join("task").join(name).exists();
        assert!(!left("one") && left("two") && left("three") && left("four") && left("five"));
    }
}
