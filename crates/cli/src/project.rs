//! The project: the folder somebody works in, and its `.antiphon`, which only its owner may read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::{RandomIds, SystemClock};
use antiphon_core::{ModelRef, Provider};
use antiphon_runtime::{NoTools, Orchestrator, World};
use antiphon_sqlite::{OpenError, SqliteJournal, Sync};

use crate::failure::Failure;
use crate::models::Models;

/// The folder that holds what Antiphon knows of a project.
const FOLDER: &str = ".antiphon";

/// The project that is worked on.
pub(crate) struct Project {
    folder: PathBuf,
}

impl Project {
    /// The nearest folder from here upward that has an `.antiphon`, or else this one.
    pub(crate) fn here() -> Result<Self, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::usage(format!("there is no current folder: {error}")))?;
        let is_known = |folder: &&Path| {
            fs::symlink_metadata(folder.join(FOLDER)).is_ok_and(|about| about.is_dir())
        };
        let known = here.ancestors().find(is_known);
        Ok(Self { folder: known.unwrap_or(&here).join(FOLDER) })
    }

    /// Whether anything was ever done here.
    pub(crate) fn has_journal(&self) -> bool {
        self.journal_path().is_file()
    }

    /// The project's journal, for this process alone.
    pub(crate) fn journal(&self) -> Result<SqliteJournal, Failure> {
        make_private(&self.folder).map_err(|error| {
            Failure::usage(format!("cannot use {}: {error}", self.folder.display()))
        })?;
        SqliteJournal::open(&self.journal_path(), Sync::Full).map_err(|error| match error {
            OpenError::Owned { .. } => Failure::unavailable(error.to_string()),
            OpenError::Later { .. } | OpenError::Damaged { .. } | OpenError::Unusable { .. } => {
                Failure::usage(error.to_string())
            }
        })
    }

    /// An orchestrator on the project's journal.
    pub(crate) fn orchestrator(&self, models: Models) -> Result<Orchestrator, Failure> {
        Ok(Orchestrator::new(World {
            journal: Arc::new(self.journal()?),
            models: Arc::new(models),
            tools: Arc::new(NoTools),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        }))
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.folder.join("journal.db")
    }
}

impl antiphon_runtime::Models for Models {
    fn provider(&self, model: &ModelRef) -> Result<Arc<dyn Provider>, String> {
        self.provider(model).map_err(|failure| failure.to_string())
    }
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    let Ok(about) = fs::symlink_metadata(folder) else {
        DirBuilder::new().mode(0o700).create(folder)?;
        // Prompts and answers are nobody else's business.
        return fs::write(folder.join(".gitignore"), "journal.db*\n");
    };
    // A link, or somebody else's folder, may come with a clone and lead anywhere.
    if !about.is_dir() {
        return Err(std::io::Error::other("it is not a folder"));
    }
    if about.uid() != fs::metadata("/proc/self")?.uid() {
        return Err(std::io::Error::other("it belongs to somebody else"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
