//! The agents of some folders, as they are now.
//!
//! Whoever asks gets a snapshot and never waits for a file. Reading never fails as a whole: what is
//! wrong is a [`Problem`] beside what is right.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use antiphon_core::AgentDefinition;
use antiphon_core::port::{Agents, PromptSource};

use crate::changes::Changes;
use crate::folder::Folder;
use crate::pages::{Entry, Pages};
use crate::problem::Problem;

/// Writes the scene of an agent.
type PromptWriter = dyn Fn(PromptSource<'_>) -> String + Send + Sync;

/// The agents of some folders.
pub struct AgentCatalog {
    folders: Vec<Folder>,
    system_prompt: Box<PromptWriter>,
    pages: RwLock<Arc<Pages>>,
    /// Held while folders are read: what is older must not replace what is newer.
    reading: Mutex<()>,
}

impl AgentCatalog {
    /// Reads the agents of `folders`. Of two with the same name, the one in the earlier folder is
    /// meant. `system_prompt` writes what an agent is told.
    pub fn open(
        folders: Vec<Folder>,
        system_prompt: impl Fn(PromptSource<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        let pages = Pages::read(&folders, &Pages::default());
        Self {
            folders,
            system_prompt: Box::new(system_prompt),
            pages: RwLock::new(Arc::new(pages)),
            reading: Mutex::new(()),
        }
    }

    /// Reads everything again and tells what is different. Blocks on files.
    pub fn reload(&self) -> Changes {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.pages();
        let after = Arc::new(Pages::read(&self.folders, &before));
        let changes = Changes::between(&before, &after);
        *self.pages.write().unwrap_or_else(PoisonError::into_inner) = after;
        changes
    }

    /// The folders, the one that counts most first.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Every agent and where it is from, ordered by name.
    pub fn entries(&self) -> Vec<Entry> {
        self.pages().entries.values().cloned().collect()
    }

    /// One agent and where it is from.
    pub fn entry(&self, name: &str) -> Option<Entry> {
        self.pages().entries.get(name).cloned()
    }

    /// What is wrong now.
    pub fn problems(&self) -> Vec<Problem> {
        self.pages().problems.clone()
    }

    /// Files that agents' files lead to.
    pub(crate) fn beside(&self) -> Vec<PathBuf> {
        self.pages().beside.clone()
    }

    fn pages(&self) -> Arc<Pages> {
        Arc::clone(&self.pages.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Agents for AgentCatalog {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.pages().entries.get(name).map(|entry| Arc::clone(&entry.definition))
    }

    fn list(&self) -> Vec<Arc<AgentDefinition>> {
        self.pages().entries.values().map(|entry| Arc::clone(&entry.definition)).collect()
    }

    fn system_prompt(&self, own: PromptSource<'_>) -> String {
        (self.system_prompt)(own)
    }
}
