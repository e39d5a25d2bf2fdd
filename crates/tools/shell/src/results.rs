//! Where the output of a task's commands is kept if it is too long to be shown.
//!
//! One folder for each task, one file for each command: `read_result` finds them by their names.

use std::fmt::Write;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use antiphon_core::TaskId;

use crate::pump::OUTPUT_BYTES_MAX;

/// Most that is kept of one task, in bytes: for more, its oldest files go.
const TASK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The results of one task.
#[derive(Debug, Clone)]
pub(crate) struct Results {
    folder: PathBuf,
}

impl Results {
    /// Those of `task_id`, in a folder of their own beneath `folder`, made when it is needed.
    pub(crate) fn of(folder: &Path, task_id: &TaskId) -> Self {
        Self { folder: folder.join(plain_name(task_id.as_str())) }
    }

    /// Makes a file that was not there, and room for it. Blocks.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.make_room()?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(0o600);
        options.open(self.folder.join(name))
    }

    fn make_room(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let found = entry.metadata()?;
            if found.is_file() {
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        files.sort();
        let mut taken: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if taken + OUTPUT_BYTES_MAX <= TASK_BYTES_MAX {
                break;
            }
            fs::remove_file(path)?;
            taken -= bytes;
        }
        Ok(())
    }
}

/// An id as the name of a folder: whatever is not plain is written as `%` and its code.
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
    fn an_id_that_is_a_path_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::of(folder.path(), &TaskId::parse("../a/b.c").unwrap());
        results.create("output").unwrap();
        assert!(folder.path().join("%2e%2e%2fa%2fb%2ec/output").is_file());
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::of(folder.path(), &TaskId::parse("task").unwrap());
        for name in ["one", "two", "three", "four"] {
            // Long, but without anything in it.
            results.create(name).unwrap().set_len(OUTPUT_BYTES_MAX).unwrap();
        }
        results.create("five").unwrap();
        let left = |name: &str| folder.path().join("task").join(name).exists();
        assert!(!left("one") && left("two") && left("three") && left("four") && left("five"));
    }
}
