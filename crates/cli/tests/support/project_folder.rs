//! A folder for a project, with a home folder beside it: a project that holds the user's home is refused.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part; a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::state::state_folder;

/// The folder of a project. It is removed with its home folder when it is dropped.
#[derive(Debug)]
pub(crate) struct ProjectFolder {
    outer: tempfile::TempDir,
    root: PathBuf,
}

impl ProjectFolder {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        fs::create_dir(home(&root)).unwrap();
        Self { outer, root }
    }

    /// Keeps the folder when it is dropped, for a look at what a failed test left.
    pub(crate) fn keep(&mut self) {
        self.outer.disable_cleanup(true);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }
}

/// The home folder of the user of a project.
pub(crate) fn home(root: &Path) -> PathBuf {
    root.with_file_name("home")
}

/// The state folder of a project. It may not exist yet.
pub(crate) fn state(root: &Path) -> PathBuf {
    state_folder(&home(root).join(".local/state/antiphon"), root)
}

/// Trusts what is in the project now: the user of the test made it.
pub(crate) fn trust(root: &Path) {
    let variables = [("HOME".into(), home(root).into_os_string())].into();
    let environment = Environment { variables, ..Environment::default() };
    let trust = Project::at(root.to_owned(), &environment).unwrap().trust();
    trust.trust(&trust.brought().unwrap()).unwrap();
}
