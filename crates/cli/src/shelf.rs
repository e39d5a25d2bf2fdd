//! The files of this project's agents, as doors read and write them: one write at a time, each whole or
//! not at all, and read again before anybody is told. Live agents hear of those that are gone.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_agent_files::{AgentCatalog, Entry, Folder};
use antiphon_core::{AgentName, visible};
use antiphon_runtime::Orchestrator;

use crate::agent_file::FileError;

/// The files of this project's agents. Clones are the same.
#[derive(Clone)]
pub(crate) struct AgentFiles {
    orchestrator: Orchestrator,
    pub(crate) agents: Arc<AgentCatalog>,
    /// Where new agents go.
    pub(crate) folder: Folder,
    writing: Arc<Mutex<()>>,
}

impl AgentFiles {
    pub(crate) fn new(
        orchestrator: &Orchestrator,
        agents: &Arc<AgentCatalog>,
        new: Folder,
    ) -> Self {
        Self {
            orchestrator: orchestrator.clone(),
            agents: Arc::clone(agents),
            folder: new,
            writing: Arc::default(),
        }
    }

    /// An agent, as its file says now.
    pub(crate) async fn find(&self, name: &AgentName) -> Option<Entry> {
        self.reload().await;
        self.agents.entry(name.as_str())
    }

    /// Writes a file where that holds up nobody, and reads it.
    pub(crate) async fn write(
        &self,
        write: impl FnOnce() -> Result<(), FileError> + Send + 'static,
    ) -> Result<(), FileError> {
        let writing = Arc::clone(&self.writing);
        let written = tokio::task::spawn_blocking(move || {
            let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
            write()
        });
        let written = written.await.map_err(|error| FileError::Unwritable(error.to_string()));
        self.reload().await;
        written.and_then(|written| written)
    }

    /// Takes a file away.
    pub(crate) async fn remove(&self, path: &Path) -> Result<(), FileError> {
        let path = path.to_owned();
        self.write(move || {
            fs::remove_file(&path)
                .map_err(|error| FileError::Unwritable(format!("{}: {error}", path.display())))
        })
        .await
    }

    /// Reads the files of the agents. What is told here is told to nobody else.
    async fn reload(&self) {
        let agents = Arc::clone(&self.agents);
        // It fails only when the program ends.
        let Ok(changes) = tokio::task::spawn_blocking(move || agents.reload()).await else {
            return;
        };
        for problem in &changes.problems {
            tracing::warn!("{}", visible(&problem.to_string()));
        }
        for name in changes.removed.iter().filter_map(|name| AgentName::parse(name).ok()) {
            if let Err(error) = self.orchestrator.notify_undefined(&name).await {
                tracing::warn!(agent.name = %name, %error, "its peers were not told that it is gone");
            }
        }
    }
}
