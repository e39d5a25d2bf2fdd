//! The files that define a project's agents and the user's own: where they are, and how interfaces read and
//! change them.

pub(crate) mod context_file;
pub(crate) mod edit;
pub mod foreign_folders;
mod front_matter;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_agent_files::{AgentCatalog, AgentFileEntry, Folder, Problem};
use antiphon_core::port::PromptSource;
use antiphon_core::{AgentName, Runtime, visible};
use antiphon_runtime::Orchestrator;

use crate::error::ProjectError;
use crate::project::Project;
use crate::settings::UserSettings;
use crate::trust::ProjectTrust;
use edit::AgentFileWrite;
pub use edit::EditError;

/// Folders of agent files in order of precedence: the user's own, then the project's, then those of other programs. A
/// project may have come with a clone, so its agent never takes the place of the user's.
fn folders(project: &Project, settings: &UserSettings) -> Vec<Folder> {
    let mut folders = vec![user_folder(settings), project_folder(project)];
    folders.extend(foreign_folders::foreign_folders(project, settings));
    folders
}

/// Folder of the user's own agents.
pub fn user_folder(settings: &UserSettings) -> Folder {
    Folder::user(settings.path.with_file_name("agents"))
}

/// Folder of the project's agents.
pub fn project_folder(project: &Project) -> Folder {
    Folder::project(project.shared_folder().join("agents"))
}

/// A catalog of both folders, whose system prompts `system_prompt` builds.
pub(crate) fn open_catalog(
    project: &Project,
    settings: &UserSettings,
    system_prompt: impl Fn(PromptSource<'_>) -> String + Send + Sync + 'static,
) -> AgentCatalog {
    let check = project.trust().file_check();
    AgentCatalog::open_checked(folders(project, settings), check, system_prompt)
        .with_fixed(settings.remote_agents())
        .offering_ad_hoc(settings.ad_hoc_agents)
}

/// Reads the definitions once. Their system prompts hold the context alone, without rules.
pub fn read_catalog(project: &Project, settings: &UserSettings) -> AgentCatalog {
    open_catalog(project, settings, |source| match source {
        PromptSource::Named(agent) => agent.context.clone(),
        PromptSource::AdHoc(prompt) => prompt.to_owned(),
    })
}

/// Names of the defined agents.
pub fn defined_agents(project: &Project, settings: &UserSettings) -> Vec<AgentName> {
    names(&read_catalog(project, settings))
}

/// Names of the agents of a catalog.
fn names(catalog: &AgentCatalog) -> Vec<AgentName> {
    catalog.entries().into_iter().map(|entry| entry.definition.name.clone()).collect()
}

/// Succeeds when the agent is defined; the error says why its file has no effect, or lists the agents that
/// are defined.
pub fn check_defined(
    project: &Project,
    settings: &UserSettings,
    name: &AgentName,
) -> Result<(), ProjectError> {
    find_entry(&read_catalog(project, settings), name.as_str()).map(|_| ())
}

/// The definition of an agent, or an error that says why there is none.
pub fn find_entry(catalog: &AgentCatalog, name: &str) -> Result<AgentFileEntry, ProjectError> {
    if let Some(entry) = catalog.entry(name) {
        return Ok(entry);
    }
    check_problem(catalog, name)?;
    Err(crate::unknown_agent(visible(name), &names(catalog)).into())
}

/// An error that says why the file of this name defines no agent, if there is such a file.
pub fn check_problem(catalog: &AgentCatalog, name: &str) -> Result<(), ProjectError> {
    let has_name = |problem: &&Problem| problem.path.file_stem().is_some_and(|stem| stem == name);
    let problem = catalog.problems().into_iter().find(|problem| has_name(&problem));
    match problem.filter(|problem| !problem.in_force) {
        Some(problem) => Err(ProjectError::InvalidInput(problem.to_string())),
        None => Ok(()),
    }
}

/// Path segments of the API in place of a name. An agent of such a name could not be reached.
const ROUTES: [&str; 1] = ["status"];

/// The name of a new agent, whichever interface creates it. It is stricter than the name of an agent that
/// exists: commands and messages write such a name without quotes, and every file system distinguishes two of them
/// apart.
pub fn new_agent_name(text: &str) -> Result<AgentName, String> {
    let name = AgentName::parse(text).map_err(|error| error.to_string())?;
    if ROUTES.contains(&name.as_str()) {
        return Err(format!(
            "`{name}` is reserved, /v1/agents/{name} is a route: choose another name"
        ));
    }
    let is_plain = |c: char| !c.is_whitespace() && !c.is_uppercase();
    if name.as_str().chars().all(is_plain) {
        return Ok(name);
    }
    let words: Vec<&str> = name.as_str().split_whitespace().collect();
    let plain = words.join("-").to_lowercase();
    Err(format!(
        "the name of a new agent has lower-case letters, digits and `_ - .`, and no spaces: use `{plain}`"
    ))
}

/// Changes the files of a project's agents: one change at a time, each whole or not at all. The catalog
/// reads a change before the caller gets its answer, and live agents are notified of removed ones.
///
/// Clones share the same files.
#[derive(Clone)]
pub struct AgentFiles {
    orchestrator: Orchestrator,
    pub(crate) catalog: Arc<AgentCatalog>,
    /// Where new agents are created.
    pub(crate) folder: Folder,
    /// The root of the project.
    pub(crate) root: PathBuf,
    /// What is written is trusted.
    trust: ProjectTrust,
    writing: Arc<Mutex<()>>,
}

impl AgentFiles {
    /// Files of `catalog`; new agents are created in the project's folder.
    pub fn new(
        orchestrator: &Orchestrator,
        catalog: &Arc<AgentCatalog>,
        project: &Project,
    ) -> Self {
        Self {
            orchestrator: orchestrator.clone(),
            catalog: Arc::clone(catalog),
            folder: project_folder(project),
            root: project.root().to_owned(),
            trust: project.trust(),
            writing: Arc::default(),
        }
    }

    /// The definition of an agent as its file is now.
    pub(crate) async fn find(&self, name: &AgentName) -> Option<AgentFileEntry> {
        self.reload().await;
        self.catalog.entry(name.as_str())
    }

    /// Carries out the write that `plan` returns on a blocking thread, and reads the files again.
    pub(crate) async fn write(
        &self,
        plan: impl FnOnce() -> Result<AgentFileWrite, EditError> + Send + 'static,
    ) -> Result<(), EditError> {
        let trust = self.trust.clone();
        let unwritable = |error: ProjectError| EditError::Unwritable(error.to_string());
        self.change(move || {
            let write = plan()?;
            // Trusted before it is there: a crash in between leaves no file without trust.
            trust.trust_next(&write.path, &write.text).map_err(unwritable)?;
            write.execute()?;
            trust.trust_written(&write.path).map_err(unwritable)
        })
        .await
    }

    /// Runs a change on a blocking thread, and reads the files again.
    async fn change(
        &self,
        change: impl FnOnce() -> Result<(), EditError> + Send + 'static,
    ) -> Result<(), EditError> {
        let writing = Arc::clone(&self.writing);
        let written = tokio::task::spawn_blocking(move || {
            let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
            change()
        });
        let written = written.await.map_err(|error| EditError::Unwritable(error.to_string()));
        self.reload().await;
        written.and_then(|written| written)
    }

    /// Removes a file.
    pub(crate) async fn remove(&self, path: &Path) -> Result<(), EditError> {
        let path = path.to_owned();
        self.change(move || {
            fs::remove_file(&path)
                .map_err(|error| EditError::Unwritable(format!("{}: {error}", path.display())))
        })
        .await
    }

    /// Allows an agent that a person made or changed to run outside of the sandbox, if it asks for that. A
    /// person is asked at its start when this fails.
    pub(crate) async fn allow_unsandboxed(&self, name: &AgentName) {
        let Some(entry) = self.catalog.entry(name.as_str()) else { return };
        let has_runner = |runtime: &Runtime| match runtime {
            Runtime::Local => false,
            Runtime::Runner(_) => true,
        };
        if !entry.definition.runtimes.iter().any(has_runner) {
            return;
        }
        if let Err(error) = self.orchestrator.allow_unsandboxed(name).await {
            tracing::warn!(agent.name = %name, %error, "it is asked about at its start");
        }
    }

    /// Reads the files again. The watcher of the files does not report these changes a second time.
    async fn reload(&self) {
        let catalog = Arc::clone(&self.catalog);
        // Fails only when the program ends.
        let Ok(changes) = tokio::task::spawn_blocking(move || catalog.reload()).await else {
            return;
        };
        for problem in &changes.problems {
            tracing::warn!("{}", visible(&problem.to_string()));
        }
        for name in changes.removed.iter().filter_map(|name| AgentName::parse(name).ok()) {
            if let Err(error) = self.orchestrator.notify_undefined(&name).await {
                tracing::warn!(agent.name = %name, %error, "peers were not notified of its removal");
            }
        }
    }
}
