//! The current agents of some folders.
//!
//! Callers get a snapshot and never wait for a file. Reading never fails as a whole: each invalid file is a
//! [`Problem`].

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use antiphon_core::AgentDefinition;
use antiphon_core::port::{AgentList, Agents, PromptSource, UntrustedAgent};

use crate::changes::Changes;
use crate::file_check::FileCheck;
use crate::folder::{Folder, FolderOwner};
use crate::problem::Problem;
use crate::snapshot::{AgentFileEntry, Snapshot};

/// Builds the system prompt of an agent.
type PromptWriter = dyn Fn(PromptSource<'_>) -> String + Send + Sync;

/// The agents of some folders.
pub struct AgentCatalog {
    folders: Vec<Folder>,
    check: FileCheck,
    /// Agents without a file of their own.
    fixed: Vec<AgentFileEntry>,
    system_prompt: Box<PromptWriter>,
    offers_ad_hoc: bool,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Held while folders are read, so that an older snapshot never replaces a newer one.
    reading: Mutex<()>,
}

impl AgentCatalog {
    /// Reads the agents of `folders`. An agent in an earlier folder replaces one of the same name in a later
    /// folder. `system_prompt` builds the system prompt of an agent.
    pub fn open(
        folders: Vec<Folder>,
        system_prompt: impl Fn(PromptSource<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::open_checked(folders, FileCheck::none(), system_prompt)
    }

    /// The same, where files of a project that `check` refuses have no effect: each is a [`Problem`].
    pub fn open_checked(
        folders: Vec<Folder>,
        check: FileCheck,
        system_prompt: impl Fn(PromptSource<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        let snapshot = Snapshot::read(&folders, &check, &[], &Snapshot::default());
        Self {
            folders,
            check,
            fixed: Vec::new(),
            system_prompt: Box::new(system_prompt),
            offers_ad_hoc: true,
            snapshot: RwLock::new(Arc::new(snapshot)),
            reading: Mutex::new(()),
        }
    }

    /// The same with agents that have no file of their own, such as those of the user's settings. A file of the user
    /// replaces one, a file of a project does not.
    pub fn with_fixed(mut self, fixed: Vec<AgentFileEntry>) -> Self {
        self.fixed = fixed;
        self.reload();
        self
    }

    /// The same, which tells tasks without an agent definition of ad-hoc agents, or does not.
    pub fn offering_ad_hoc(self, offers_ad_hoc: bool) -> Self {
        Self { offers_ad_hoc, ..self }
    }

    /// Reads every file again and returns what changed. Blocks on files.
    pub fn reload(&self) -> Changes {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.snapshot();
        let after = Arc::new(Snapshot::read(&self.folders, &self.check, &self.fixed, &before));
        let changes = Changes::between(&before, &after);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = after;
        changes
    }

    /// The folders, in order of precedence.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Every agent with its file, ordered by name.
    pub fn entries(&self) -> Vec<AgentFileEntry> {
        self.snapshot().entries.values().cloned().collect()
    }

    /// One agent with its file.
    pub fn entry(&self, name: &str) -> Option<AgentFileEntry> {
        self.snapshot().entries.get(name).cloned()
    }

    /// The current problems.
    pub fn problems(&self) -> Vec<Problem> {
        self.snapshot().problems.clone()
    }

    /// Files outside of the folders that the agents depend on.
    pub(crate) fn depends_on(&self) -> Vec<PathBuf> {
        let mut files = self.snapshot().referenced.clone();
        files.extend_from_slice(self.check.depends_on());
        files
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Agents for AgentCatalog {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.snapshot().entries.get(name).map(|entry| Arc::clone(&entry.definition))
    }

    fn list(&self) -> AgentList {
        Arc::clone(&self.snapshot().definitions)
    }

    /// A file of the user's own folder is the user's. A file of a project may have come with a clone.
    fn unsandboxed(&self, name: &str) -> Result<(), UntrustedAgent> {
        match self.entry(name) {
            Some(entry) if entry.origin == FolderOwner::Project => {
                let path = entry.path.display().to_string();
                Err(UntrustedAgent { path, version: entry.version })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn offers_ad_hoc(&self) -> bool {
        self.offers_ad_hoc
    }

    fn system_prompt(&self, source: PromptSource<'_>) -> String {
        (self.system_prompt)(source)
    }
}
