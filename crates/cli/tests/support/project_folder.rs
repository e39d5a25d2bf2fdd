//! A folder for a project, with a home folder beside it: a project that holds the user's home is refused.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part; a test fails by panicking"
)]

#[path = "users.rs"]
mod users;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        choose_model(&root);
        Self { outer, root }
    }

    /// One for each user that the test can be: the user of the test, and an ordinary one if that is root.
    pub(crate) fn each() -> Vec<Self> {
        users::all().into_iter().map(Self::of).collect()
    }

    fn of(user: Option<u32>) -> Self {
        let Some(user) = user else { return Self::new() };
        let outer = users::folder_of(Some(user));
        let root = outer.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        fs::create_dir(home(&root)).unwrap();
        choose_model(&root);
        for folder in [outer.path(), &root] {
            lchown(folder, Some(user), Some(user)).unwrap();
        }
        let (built, near) = (env!("CARGO_BIN_EXE_antiphon"), root.with_file_name("antiphon"));
        fs::hard_link(built, &near).or_else(|_| fs::copy(built, &near).map(drop)).unwrap();
        // Others can only go through it.
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
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

/// The user has chosen the model that answers from a script: tests have no key.
fn choose_model(root: &Path) {
    let config = home(root).join(".config/antiphon");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "model = \"scripted/hello\"\n").unwrap();
}

/// The binary in the project at `root`, as the user whom that folder belongs to: what the test has made in it and
/// in the home folder is that user's. Its environment has a home and a search path.
pub(crate) fn antiphon(root: &Path) -> Command {
    let mut command = match give_to_owner(root) {
        None => Command::new(env!("CARGO_BIN_EXE_antiphon")),
        Some(user) => {
            let mut command = Command::new(root.with_file_name("antiphon"));
            command.uid(user).gid(user);
            command
        }
    };
    command.current_dir(root).env_clear().env("HOME", home(root));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// Gives what is in the project and in the home folder to the user whom the project belongs to. Returns that
/// user, unless it is the user of the test.
pub(crate) fn give_to_owner(root: &Path) -> Option<u32> {
    let own = fs::metadata("/proc/self").unwrap().uid();
    let user = fs::metadata(root).ok()?.uid();
    if user == own {
        return None;
    }
    for folder in [root.to_owned(), home(root)] {
        give(&folder, user);
    }
    Some(user)
}

fn give(path: &Path, user: u32) {
    // A server of the user may remove files meanwhile.
    let Ok(about) = fs::symlink_metadata(path) else { return };
    if about.uid() != user {
        let _ = lchown(path, Some(user), Some(user));
    }
    if about.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            give(&entry.path(), user);
        }
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
    trust.trust(&trust.items().unwrap()).unwrap();
}
