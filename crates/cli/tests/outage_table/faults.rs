//! Faults of the machine that the program under test sees: a full disk, a wall clock that was set.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::preload::{Library, compile};

/// The faults of one project's processes. Those of a new process are the same.
pub(crate) struct Faults {
    file: File,
    path: PathBuf,
}

impl Faults {
    pub(crate) fn new(folder: &Path) -> Self {
        let path = folder.join("faults");
        let file = File::options().create_new(true).write(true).open(&path).unwrap();
        file.set_len(16).unwrap();
        Self { file, path }
    }

    /// Has the process of `command` see them.
    pub(crate) fn arm(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env("FAULTS", &self.path);
    }

    pub(crate) fn fill_disk(&self, is_full: bool) {
        self.file.write_all_at(&i64::from(is_full).to_ne_bytes(), 0).unwrap();
    }

    /// Sets the wall clock so many seconds ahead of the real one.
    pub(crate) fn shift_clock(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 8).unwrap();
    }
}

/// The preloaded library, compiled once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    &LIBRARY.get_or_init(|| compile("outage_table/faults.c")).path
}
