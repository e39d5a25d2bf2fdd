//! A project: the folder agents work in, and what the user's state folder holds about it.
//!
//! The project's `.antiphon` is data that people share: agents, requests. It may come with a clone, so
//! nothing in it is believed. The journal, the token and the keys are in the state folder (`state`).

mod orchestrators;
mod root;
mod untrusted_requests;

use std::fs;
use std::path::{Path, PathBuf};

use antiphon_keys::KeyRing;
use antiphon_private_file::create_folder;
use antiphon_sqlite::{SqliteJournal, Sync};

use crate::control_orders::drop_settings;
use crate::environment::{Environment, Warnings};
use crate::error::ProjectError;
use crate::prompt::Rules;
use crate::settings::UserSettings;
use crate::state::identity::RootIdentity;
use crate::state::location::{state_base, state_folder};
use crate::state::record::ProjectRecord;
use crate::state::registry;

/// Folder of a project that holds its agents and requests.
const FOLDER: &str = ".antiphon";

/// Name of the journal in a state folder.
pub(crate) const JOURNAL: &str = "journal.db";

/// A project on this machine.
pub struct Project {
    root: PathBuf,
    state: PathBuf,
    current_dir: PathBuf,
    warnings: Warnings,
}

impl Project {
    /// The project of the current folder: the nearest folder with an `.antiphon` at or below the top of the
    /// git work tree, or else that top, or else the current folder. A folder that holds the user's own files
    /// is refused. When the root is not the folder that the state belongs to, the user is asked.
    pub fn find(environment: &Environment) -> Result<Self, ProjectError> {
        let current_dir = environment.current_dir()?;
        let project = Self::at(root::find(current_dir), environment)?;
        root::check(&project.root, environment)?;
        project.check_identity(environment)?;
        Ok(Self { current_dir: current_dir.to_owned(), ..project })
    }

    /// The project whose root is this folder.
    pub fn at(root: PathBuf, environment: &Environment) -> Result<Self, ProjectError> {
        let state = state_folder(&state_base(environment)?, &root);
        let warnings = environment.warnings.clone();
        Ok(Self { current_dir: root.clone(), root, state, warnings })
    }

    /// The same as [`Self::find`], or an error when the project has no journal.
    pub fn find_existing(environment: &Environment) -> Result<Self, ProjectError> {
        let project = Self::find(environment)?;
        if !project.has_journal() {
            project.warn_of_old_journal();
            let message = "there are no tasks here: begin with `antiphon run`";
            return Err(ProjectError::InvalidInput(message.to_owned()));
        }
        Ok(project)
    }

    /// The folder agents work in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Rules for agents, from the user's configuration folder and from the root down to the current folder.
    pub fn rules(&self, settings: &UserSettings) -> Rules {
        Rules::find(settings.path.parent(), &self.root, &self.current_dir)
    }

    /// Its `.antiphon` folder, which people share. It may not exist.
    pub fn shared_folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// Its folder in the user's state folder. It may not exist yet.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Whether the project has a journal: a task was created here before.
    pub fn has_journal(&self) -> bool {
        self.journal_path().is_file()
    }

    /// Path of its journal, which may not exist yet.
    pub fn journal_path(&self) -> PathBuf {
        self.state.join(JOURNAL)
    }

    /// Creates the state folder if it is missing. Only the user may read it.
    pub fn prepare(&self) -> Result<(), ProjectError> {
        let prepared =
            registry::create(&self.state).and_then(|()| match ProjectRecord::read(&self.state)? {
                Some(_) => Ok(()),
                None => ProjectRecord::of(&self.root)?.write(&self.state),
            });
        prepared.map_err(|error| unusable(&self.state, &error))
    }

    /// Creates the `.antiphon` folder if it is missing, and takes access from other users: they could drop
    /// requests into it.
    pub fn prepare_shared(&self) -> Result<(), ProjectError> {
        let folder = self.shared_folder();
        make_private(&folder).map_err(|error| unusable(&folder, &error))
    }

    /// Opens the journal for this process alone, and creates it if it is missing. Unavailable while another
    /// process holds it.
    pub fn journal(&self) -> Result<SqliteJournal, ProjectError> {
        self.prepare_journal()?;
        SqliteJournal::open(&self.journal_path(), Sync::Full).map_err(ProjectError::from)
    }

    /// Makes the state folder ready for a journal. Before the first one, requests that lie in the project
    /// are set aside: they may have come with a clone.
    pub fn prepare_journal(&self) -> Result<(), ProjectError> {
        self.prepare()?;
        if !self.has_journal() {
            untrusted_requests::set_aside(self.root(), &drop_settings(), &self.warnings)?;
            self.warn_of_old_journal();
        }
        Ok(())
    }

    /// Creates the journal if it is missing.
    pub fn ensure_journal(&self) -> Result<(), ProjectError> {
        if !self.has_journal() {
            self.journal()?;
        }
        Ok(())
    }

    /// The project's API keys.
    pub fn keys(&self) -> Result<KeyRing, ProjectError> {
        Ok(KeyRing::open(self.state.join("keys.json"))?)
    }

    /// Asks when another folder is at the path of the root now. Its tasks may not be this folder's.
    fn check_identity(&self, environment: &Environment) -> Result<(), ProjectError> {
        let unreadable = |error: std::io::Error| unusable(&self.state, &error);
        let Some(record) = ProjectRecord::read(&self.state).map_err(unreadable)? else {
            return Ok(());
        };
        let now = RootIdentity::of(&self.root).map_err(|error| unusable(&self.root, &error))?;
        if record.identity.is_same(&now) {
            return Ok(());
        }
        let root = self.root.display();
        let question = format!(
            "{root} is not the folder that its tasks were recorded for. Is it the same project?"
        );
        match environment.questions.ask(&question) {
            Some(true) => ProjectRecord::of(&self.root)
                .and_then(|record| record.write(&self.state))
                .map_err(unreadable),
            Some(false) => {
                let aside = registry::set_aside(&self.state).map_err(unreadable)?;
                environment.warnings.report(&format!(
                    "this project starts without tasks; those of the folder before are in {}",
                    aside.display()
                ));
                Ok(())
            }
            None => Err(ProjectError::Refused(format!(
                "{root} is not the folder that its tasks were recorded for. If it is the same project, run \
                 `antiphon projects move '{root}' '{root}'`; if not, `antiphon projects forget '{root}'`"
            ))),
        }
    }

    /// Warns about a journal in the project's own folder: earlier versions kept it there.
    fn warn_of_old_journal(&self) {
        let old = self.shared_folder().join(JOURNAL);
        if old.is_file() {
            let old = old.display();
            self.warnings.report(&antiphon_core::visible(&format!(
                "{old} is not read: it may have come with a clone. If it is yours, `antiphon restore {old}` \
                 brings its tasks over"
            )));
        }
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> ProjectError {
    ProjectError::InvalidInput(format!("cannot use {}: {error}", path.display()))
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(folder).is_err() {
        create_folder(folder)?;
        // Requests are orders to this machine and must not be committed by accident.
        return fs::write(folder.join(".gitignore"), "requests/\n");
    }
    // A link, or another user's folder, may have come with a clone and lead anywhere.
    create_folder(folder)
}
