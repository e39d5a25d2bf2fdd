//! How a command reaches its project: in a folder of this machine, or through the server that `--server`
//! names. What a command prints is the same.

use std::sync::Arc;

use antiphon_core::PriceTable;
use antiphon_core::port::TaskJournal;
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_project::toolset::Toolset;
use antiphon_sqlite::SqliteJournal;

use super::{Connection, ProjectServer, Twice};
use crate::tree_reader::TreeReader;
use antiphon_project::error::ProjectError;

/// The project of a command.
pub enum ProjectAccess<'a> {
    /// A folder of this machine.
    Folder {
        /// The project of the folder.
        project: Project,
        /// What the process was started with.
        environment: &'a Environment,
    },
    /// A server, by its address.
    Server {
        /// The server that `--server` names.
        server: &'a ProjectServer,
        /// What the process was started with.
        environment: &'a Environment,
    },
}

impl<'a> ProjectAccess<'a> {
    /// The project of this folder. It has to exist.
    pub fn of_folder(environment: &'a Environment) -> Result<Self, ProjectError> {
        let project = Project::find_existing(environment)?;
        Ok(Self::Folder { project, environment })
    }

    /// The project of the server that `--server` names.
    pub fn of_server(server: &'a ProjectServer, environment: &'a Environment) -> Self {
        Self::Server { server, environment }
    }

    /// Prices of the user's configuration.
    pub fn prices(&self) -> Result<PriceTable, ProjectError> {
        let (Self::Folder { environment, .. } | Self::Server { environment, .. }) = self;
        Ok(UserSettings::load(environment)?.prices)
    }

    /// Opens the project to read it.
    pub fn read(&self) -> Result<Connection, ProjectError> {
        match self {
            Self::Folder { project, environment } => {
                // No server is asked: looking is always possible.
                Ok(Connection::Local(project.reader(models(project, environment)?)?))
            }
            Self::Server { server, .. } => named(server),
        }
    }

    /// The journal, to read it while another process writes it.
    fn journal(&self) -> Result<Arc<dyn TaskJournal>, ProjectError> {
        match self {
            Self::Folder { project, .. } => {
                Ok(Arc::new(SqliteJournal::open_read_only(&project.journal_path())?))
            }
            Self::Server { server, .. } => Ok(server.named_journal().ok_or_else(unnamed)?),
        }
    }

    /// A reader of trees of tasks, beside the process that runs them.
    pub async fn tree_reader(&self) -> Result<TreeReader, ProjectError> {
        let server = match self {
            Self::Folder { .. } => None,
            Self::Server { server, .. } => Some((*server).clone()),
        };
        Ok(TreeReader::new(self.journal()?, self.owner().await, server))
    }

    /// Opens the project for a change.
    pub async fn change(&self) -> Result<Connection, ProjectError> {
        match self {
            Self::Folder { project, environment } => {
                let models = models(project, environment)?;
                Connection::open(project, models, Toolset::none()).await
            }
            Self::Server { server, .. } => named(server),
        }
    }

    /// Carries out a change at whichever process owns the journal. Returns the answer with where it came from.
    pub async fn changed<T>(
        &self,
        twice: Twice,
        request: impl AsyncFn(&Connection) -> Result<T, ProjectError>,
    ) -> Result<(Connection, T), ProjectError> {
        let open = async || self.change().await;
        Connection::at_any_owner(self.environment(), twice, open, request).await
    }

    /// The same for a decision.
    pub async fn decided<T>(
        &self,
        twice: Twice,
        request: impl AsyncFn(&Connection) -> Result<T, ProjectError>,
    ) -> Result<(Connection, T), ProjectError> {
        let open = async || self.decide().await;
        Connection::at_any_owner(self.environment(), twice, open, request).await
    }

    fn environment(&self) -> &Environment {
        let (Self::Folder { environment, .. } | Self::Server { environment, .. }) = self;
        environment
    }

    /// Opens the project for a decision; the gate records a rule that is always allowed.
    pub async fn decide(&self) -> Result<Connection, ProjectError> {
        match self {
            Self::Folder { project, environment } => {
                let models = models(project, environment)?;
                let toolset = Toolset::gate_only(project, models.settings())?;
                Connection::open(project, models, toolset).await
            }
            Self::Server { server, .. } => named(server),
        }
    }
}

fn models(project: &Project, environment: &Environment) -> Result<Models, ProjectError> {
    Ok(Models::new(project.settings(environment)?))
}

fn named(server: &ProjectServer) -> Result<Connection, ProjectError> {
    Connection::named(server).ok_or_else(unnamed)
}

fn unnamed() -> ProjectError {
    ProjectError::Failed("the server was not named with --server".to_owned())
}
