//! A project: the folder agents work in, and what the user's state folder holds about it.
//!
//! The project's `.antiphon` is data that people share: settings, agents, requests. It may come with a clone,
//! so it has no effect until the user trusts it (`trust`), except for agents that only read. The journal, the token and the keys are in the state folder (`state`).

pub mod journal_restore;
pub(crate) mod machine_clock;
mod maintenance;
mod orchestrators;
pub(crate) mod own_tools;
mod owner;
mod root;

use std::fs;
use std::path::{Path, PathBuf};

use antiphon_core::TaskId;
use antiphon_keys::KeyRing;
use antiphon_private_file::create_folder;
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use antiphon_toolbox::OutputStore;
use tokio_util::sync::CancellationToken;

pub use maintenance::RepairOutcome;
pub use owner::{OwnerRole, ProjectOwner};

use crate::environment::{Environment, Warnings};
use crate::error::{ProjectError, unusable};
use crate::hidden_paths::hidden_paths;
use crate::instruction_files::InstructionFiles;
use crate::request_drop::ProvidedRequestDrop;
use crate::settings::project_file::{self, ProjectFile};
use crate::settings::{UserSettings, mcp_json};
use crate::state::identity::FolderIdentity;
use crate::state::location::{state_base, state_folder};
use crate::state::record::ProjectRecord;
use crate::state::registry;
use crate::trust::ProjectTrust;

/// Folder of a project that holds its agents and requests.
pub(crate) const FOLDER: &str = ".antiphon";

/// Name of the journal in a state folder.
pub(crate) const JOURNAL: &str = "journal.db";

/// A project on this machine.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    state: PathBuf,
    current_dir: PathBuf,
    warnings: Warnings,
    /// Fires when this process is to carry out requests that are dropped as files.
    requests_wanted: CancellationToken,
    request_drop: ProvidedRequestDrop,
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
        let (current_dir, requests_wanted) = (root.clone(), CancellationToken::new());
        let request_drop = environment.request_drop.clone();
        Ok(Self { root, state, current_dir, warnings, requests_wanted, request_drop })
    }

    /// Fires when this process is to carry out requests that are dropped as files. Clones of the project share it.
    pub fn requests_wanted(&self) -> &CancellationToken {
        &self.requests_wanted
    }

    /// Reads and answers request files of the project.
    pub fn request_drop(&self) -> &ProvidedRequestDrop {
        &self.request_drop
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

    /// What the user trusts in this project.
    pub fn trust(&self) -> ProjectTrust {
        ProjectTrust::new(&self.root, &self.state, &self.request_drop)
    }

    /// The user's settings, and below them those of the project, if the user trusts them.
    pub fn settings(&self, environment: &Environment) -> Result<UserSettings, ProjectError> {
        let user = UserSettings::load(environment)?;
        let trust = self.trust();
        let settings = match trust.settings_text()? {
            Some(text) => project_file::parse(&self.root, &text)?.below(&self.root, user)?,
            None => user,
        };
        match trust.mcp_json_text() {
            Some(text) => {
                let mut unused = Vec::new();
                let servers = mcp_json::usable(&text, &settings, &mut unused);
                let mut settings = ProjectFile::of_servers(servers).below(&self.root, settings)?;
                settings.unused_servers = unused;
                Ok(settings)
            }
            None => Ok(settings),
        }
    }

    /// The same for a command that runs tasks: the user is asked about what the project brings and is
    /// not trusted.
    pub fn reviewed_settings(
        &self,
        environment: &Environment,
    ) -> Result<UserSettings, ProjectError> {
        self.trust().review(environment)?;
        self.settings(environment)
    }

    /// Rules for agents, from the user's configuration folder and from the root down to the current folder.
    pub fn rules(&self, settings: &UserSettings) -> InstructionFiles {
        self.rules_down_to(&self.current_dir, settings)
    }

    /// The same down to another folder.
    pub(crate) fn rules_down_to(&self, folder: &Path, settings: &UserSettings) -> InstructionFiles {
        let hidden = hidden_paths(self, settings);
        InstructionFiles::find(settings.path.parent(), &self.root, folder, &hidden)
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
        registry::prepare(&self.state, &self.root).map_err(|error| unusable(&self.state, &error))
    }

    /// Creates the `.antiphon` folder if it is missing, and takes access from other users: they could drop
    /// requests into it.
    pub fn prepare_shared(&self) -> Result<(), ProjectError> {
        let folder = self.shared_folder();
        make_private(&folder).map_err(|error| unusable(&folder, &error))
    }

    /// The folder of requests that our own commands use. Creates it if it is missing.
    pub fn prepare_requests(&self) -> Result<PathBuf, ProjectError> {
        self.prepare_shared()?;
        let folder = self.shared_folder().join("requests");
        self.trust().create_folder(&folder)?;
        Ok(folder)
    }

    /// The same, or an error when the user does not trust it.
    pub fn trusted_requests(&self) -> Result<PathBuf, ProjectError> {
        let folder = self.prepare_requests()?;
        if self.trust().is_trusted_folder(&folder) {
            return Ok(folder);
        }
        let folder = folder.display();
        Err(ProjectError::Refused(format!(
            "{folder} is not trusted: it may have come with the project. Look what is in it, then run `antiphon \
             trust`"
        )))
    }

    /// Opens the journal for this process alone, and creates it if it is missing. Unavailable while another
    /// process holds it.
    pub fn journal(&self) -> Result<SqliteJournal, ProjectError> {
        self.prepare_journal()?;
        SqliteJournal::open(&self.journal_path(), SyncPolicy::Full).map_err(ProjectError::from)
    }

    /// The same, or `None` at once while another process holds the journal.
    pub fn try_journal(&self) -> Result<Option<SqliteJournal>, ProjectError> {
        self.prepare_journal()?;
        SqliteJournal::try_open(&self.journal_path(), SyncPolicy::Full).map_err(ProjectError::from)
    }

    /// Makes the state folder ready for a journal.
    pub fn prepare_journal(&self) -> Result<(), ProjectError> {
        self.prepare()?;
        if !self.has_journal() {
            self.warn_of_old_journal();
        }
        Ok(())
    }

    /// Creates the journal if it is missing.
    pub fn ensure_journal(&self) -> Result<(), ProjectError> {
        if !self.has_journal() {
            // A process that holds it creates it.
            self.try_journal()?;
        }
        Ok(())
    }

    /// Removes the stored results of tasks that are no longer in the journal. Returns of how many.
    fn remove_results(&self, tasks: &[TaskId]) -> Result<usize, ProjectError> {
        let folder = self.results_folder();
        if !folder.is_dir() {
            return Ok(0);
        }
        let results = OutputStore::open(&folder).map_err(|error| unusable(&folder, &error))?;
        let mut removed = 0;
        for task_id in tasks {
            let found = results.remove(task_id).map_err(|error| unusable(&folder, &error))?;
            removed += usize::from(found);
        }
        Ok(removed)
    }

    /// The folder of results that are too long for a model.
    pub fn results_folder(&self) -> PathBuf {
        self.state.join("results")
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
        let now = FolderIdentity::of(&self.root).map_err(|error| unusable(&self.root, &error))?;
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
                registry::forget_rules(&self.root, environment)?;
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

fn make_private(folder: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(folder).is_err() {
        create_folder(folder)?;
        // Requests are orders to this machine and must not be committed by accident.
        return fs::write(folder.join(".gitignore"), "requests/\n");
    }
    // A link, or another user's folder, may have come with a clone and lead anywhere.
    create_folder(folder)
}
