//! A project: the folder agents work in, and its `.antiphon`, which only its owner may read.
//!
//! What lies in `.antiphon` before the first journal exists may have come with a clone. It is untrusted:
//! keys are refused, a token is removed, and requests are set aside.

mod orchestrators;
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

/// Folder of a project that holds its journal, keys and agents.
const FOLDER: &str = ".antiphon";

/// A project on this machine.
pub struct Project {
    root: PathBuf,
    current_dir: PathBuf,
    warnings: Warnings,
}

impl Project {
    /// The project of the current folder: the nearest folder upward with an `.antiphon`, or else the current
    /// folder itself.
    pub fn find(environment: &Environment) -> Result<Self, ProjectError> {
        let current_dir = environment.current_dir()?;
        let is_known = |folder: &&Path| {
            fs::symlink_metadata(folder.join(FOLDER)).is_ok_and(|about| about.is_dir())
        };
        let root = current_dir.ancestors().find(is_known).unwrap_or(current_dir).to_owned();
        let warnings = environment.warnings.clone();
        Ok(Self { root, current_dir: current_dir.to_owned(), warnings })
    }

    /// The project whose root is this folder.
    pub fn at(root: PathBuf) -> Self {
        Self { current_dir: root.clone(), root, warnings: Warnings::default() }
    }

    /// The same as [`Self::find`], or an error when the project has no journal.
    pub fn find_existing(environment: &Environment) -> Result<Self, ProjectError> {
        let project = Self::find(environment)?;
        if !project.has_journal() {
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

    /// Its `.antiphon` folder, which may not exist yet.
    pub fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// Whether the project has a journal: a task was created here before.
    pub fn has_journal(&self) -> bool {
        self.journal_path().is_file()
    }

    /// Path of its journal, which may not exist yet.
    pub fn journal_path(&self) -> PathBuf {
        self.folder().join("journal.db")
    }

    /// Creates the `.antiphon` folder if it is missing, and makes it private to its owner.
    pub fn prepare(&self) -> Result<(), ProjectError> {
        let folder = self.folder();
        make_private(&folder).map_err(|error| {
            ProjectError::InvalidInput(format!("cannot use {}: {error}", folder.display()))
        })
    }

    /// Opens the journal for this process alone, and creates it if it is missing. Unavailable while another
    /// process holds it.
    pub fn journal(&self) -> Result<SqliteJournal, ProjectError> {
        self.prepare_journal()?;
        SqliteJournal::open(&self.journal_path(), Sync::Full).map_err(ProjectError::from)
    }

    /// Makes the folder ready for a journal. Without a journal, what lies in it is untrusted: keys are
    /// refused, a token is removed, and requests are set aside.
    pub fn prepare_journal(&self) -> Result<(), ProjectError> {
        self.refuse_untrusted_keys()?;
        self.prepare()?;
        if !self.has_journal() {
            self.remove_untrusted_token()?;
            untrusted_requests::set_aside(self.root(), &drop_settings(), &self.warnings)?;
        }
        Ok(())
    }

    /// Creates the journal if it is missing. From then on, files in the folder are trusted.
    pub fn ensure_journal(&self) -> Result<(), ProjectError> {
        if !self.has_journal() {
            self.journal()?;
        }
        Ok(())
    }

    /// The project's API keys.
    pub fn keys(&self) -> Result<KeyRing, ProjectError> {
        self.refuse_untrusted_keys()?;
        Ok(KeyRing::open(self.keys_path())?)
    }

    fn keys_path(&self) -> PathBuf {
        self.folder().join("keys.json")
    }

    /// Keys that are older than the journal may have come with a clone, so others may know them.
    fn refuse_untrusted_keys(&self) -> Result<(), ProjectError> {
        let path = self.keys_path();
        if self.has_journal() || fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        Err(ProjectError::Refused(format!(
            "{} is older than the journal of this project: it may have come with a clone, and others may know \
             its keys. Remove it, and create your own keys with `antiphon keys new`",
            path.display()
        )))
    }

    /// The same holds for a token: the server creates a new one.
    fn remove_untrusted_token(&self) -> Result<(), ProjectError> {
        let path = self.folder().join("token");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ProjectError::Refused(format!("cannot remove {}: {error}", path.display())))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(folder).is_err() {
        create_folder(folder)?;
        // Prompts and answers must not be committed by accident.
        return fs::write(
            folder.join(".gitignore"),
            "journal.db*\nmcp-tools.json\nresults/\ntmp/\nworkers/\nterminals/\nrequests/\nschedules.json\n\
             server.json\nserver.sock\ntoken\nkeys.json*\n",
        );
    }
    // A link, or another user's folder, may have come with a clone and lead anywhere.
    create_folder(folder)
}
