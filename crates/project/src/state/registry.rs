//! All state folders of the user: which project each belongs to, and what became of the project's folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use antiphon_permissions::Remembered;
use antiphon_private_file::create_folder;
use antiphon_sqlite::Owner;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::identity::FolderIdentity;
use super::location::{PROJECTS, state_base, state_folder};
use super::record::ProjectRecord;
use crate::environment::Environment;
use crate::error::{ProjectError, unusable};
use crate::project::JOURNAL;
use crate::settings::remembered_path;

/// What became of the folder of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RootStatus {
    /// It is where it was.
    Present,
    /// There is no folder at its path.
    Gone,
    /// Another folder is at its path.
    Replaced,
}

impl RootStatus {
    /// The status in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Gone => "gone",
            Self::Replaced => "replaced",
        }
    }
}

/// A state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownProject {
    /// Name of the state folder.
    pub id: String,
    /// The project's root.
    pub root: PathBuf,
    /// What became of the root.
    pub status: RootStatus,
    /// Path of the state folder.
    pub state: PathBuf,
    /// Size of all files in the state folder, in bytes.
    pub bytes: u64,
    /// When the journal was last written; absent without a journal.
    pub last_used: Option<DateTime<Utc>>,
}

/// The state folders of the user.
#[derive(Debug, Clone)]
pub struct Registry {
    base: PathBuf,
}

impl Registry {
    /// The state folders that the environment names.
    pub fn new(environment: &Environment) -> Result<Self, ProjectError> {
        Ok(Self { base: state_base(environment)? })
    }

    /// The user's state folder.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// All projects with a state folder, the last used first.
    pub fn list(&self) -> Result<Vec<KnownProject>, ProjectError> {
        let mut projects: Vec<KnownProject> =
            self.state_folders()?.iter().filter_map(|state| known(state)).collect();
        projects.sort_by(|one, other| {
            other.last_used.cmp(&one.last_used).then_with(|| one.root.cmp(&other.root))
        });
        Ok(projects)
    }

    /// The project that `name` names: the path of its root, or the name of its state folder.
    pub fn find(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<KnownProject, ProjectError> {
        let path = environment.absolute(Path::new(name))?;
        let path = fs::canonicalize(&path).unwrap_or_else(|_| in_real_folder(path));
        let is_named = |state: &&PathBuf| {
            let root = ProjectRecord::read(state).ok().flatten().map(|record| record.root());
            root.as_ref() == Some(&path) || state.file_name().is_some_and(|id| id == name)
        };
        let mut folders = self.state_folders()?;
        // State that was set aside has the same root. Its path names the state in use.
        let in_use = state_folder(&self.base, &path);
        folders.sort_by_key(|state| *state != in_use);
        folders.iter().find(is_named).and_then(|state| known(state)).ok_or_else(|| {
            ProjectError::InvalidInput(format!(
                "no state is kept for `{name}`: `antiphon projects list` shows the projects"
            ))
        })
    }

    fn state_folders(&self) -> Result<Vec<PathBuf>, ProjectError> {
        let folder = self.base.join(PROJECTS);
        match fs::read_dir(&folder) {
            Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unusable(&folder, &error)),
        }
    }

    /// Gives the state of `project` to the folder at `root`. The state that this folder has must hold no
    /// journal.
    pub fn move_to(
        &self,
        project: &KnownProject,
        root: &Path,
    ) -> Result<KnownProject, ProjectError> {
        let _owner = own(project)?;
        let root = fs::canonicalize(root).map_err(|error| unusable(root, &error))?;
        let record = ProjectRecord::of(&root).map_err(|error| unusable(&root, &error))?;
        let state = state_folder(&self.base, &root);
        if state != project.state {
            if state.join(JOURNAL).exists() {
                return Err(ProjectError::Refused(format!(
                    "{} has tasks of its own: forget them first with `antiphon projects forget`",
                    root.display()
                )));
            }
            remove(&state)?;
            fs::rename(&project.state, &state).map_err(|error| unusable(&project.state, &error))?;
        }
        record.write(&state).map_err(|error| unusable(&state, &error))?;
        known(&state).ok_or_else(|| unusable(&state, &io::ErrorKind::NotFound.into()))
    }

    /// Deletes everything that is kept for `project`: tasks, sessions, keys, and, unless its state was set
    /// aside before, the rules that are always allowed in it. Its own folder stays as it is.
    pub fn forget(
        &self,
        project: &KnownProject,
        environment: &Environment,
    ) -> Result<(), ProjectError> {
        let _owner = own(project)?;
        if state_folder(&self.base, &project.root) == project.state {
            forget_rules(&project.root, environment)?;
        }
        remove(&project.state)
    }
}

/// Removes the rules that the user always allows in the project at `root`.
pub(crate) fn forget_rules(root: &Path, environment: &Environment) -> Result<(), ProjectError> {
    Remembered::forget(&remembered_path(environment), root)
        .map_err(|error| ProjectError::InvalidInput(error.to_string()))
}

/// Moves the state of a root aside, so that another folder at its path starts empty. Returns the new name.
pub(crate) fn set_aside(state: &Path) -> io::Result<PathBuf> {
    for number in 1..=u16::MAX {
        let mut aside = state.as_os_str().to_owned();
        aside.push(format!("-replaced-{number}"));
        let aside = PathBuf::from(aside);
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(state, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other("too many folders were set aside before"))
}

/// Creates the state folder of a project, and all folders above it that are missing.
fn create(state: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let projects = state.parent().ok_or(io::ErrorKind::NotFound)?;
    let base = projects.parent().ok_or(io::ErrorKind::NotFound)?;
    if let Some(parent) = base.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    [base, projects, state].into_iter().try_for_each(create_folder)
}

/// The same, with a record of the root that it belongs to.
pub(crate) fn prepare(state: &Path, root: &Path) -> io::Result<()> {
    create(state)?;
    match ProjectRecord::read(state)? {
        Some(_) => Ok(()),
        None => ProjectRecord::of(root)?.write(state),
    }
}

/// Keeps other processes from the project's tasks. Unavailable while one works on them.
fn own(project: &KnownProject) -> Result<Owner, ProjectError> {
    Ok(Owner::claim(&project.state.join(JOURNAL))?)
}

fn remove(folder: &Path) -> Result<(), ProjectError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(folder, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn known(state: &Path) -> Option<KnownProject> {
    let record = ProjectRecord::read(state).ok()??;
    let root = record.root();
    let status = match FolderIdentity::of(&root) {
        Ok(identity) if identity.is_same(&record.identity) => RootStatus::Present,
        Ok(_) => RootStatus::Replaced,
        Err(_) => RootStatus::Gone,
    };
    // Writes go to the log beside the journal first.
    let written =
        |name: &str| fs::metadata(state.join(name)).and_then(|about| about.modified()).ok();
    let last_used: Option<SystemTime> =
        [JOURNAL, "journal.db-wal"].into_iter().filter_map(written).max();
    Some(KnownProject {
        id: state.file_name()?.to_string_lossy().into_owned(),
        root,
        status,
        state: state.to_owned(),
        bytes: size(state),
        last_used: last_used.map(DateTime::from),
    })
}

/// Size of all files below a folder. Links are not followed.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match fs::symlink_metadata(entry.path()) {
        Ok(about) if about.is_dir() => size(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// The path of a folder that is gone, without `..` and links in the folder it was in.
fn in_real_folder(path: PathBuf) -> PathBuf {
    let real = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let real = real.and_then(|folder| Some(folder.join(path.file_name()?)));
    real.unwrap_or(path)
}
