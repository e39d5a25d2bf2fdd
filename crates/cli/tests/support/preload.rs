//! Libraries that are preloaded into the program under test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled library. It is removed when it is dropped.
pub(crate) struct Library {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

/// Compiles a C file, named from the folder `tests`.
pub(crate) fn compile(source: &str) -> Library {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("preloaded.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
        .args([&path, &source])
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(compiled.success(), "the C compiler failed to build {}", source.display());
    Library { _folder: folder, path }
}
