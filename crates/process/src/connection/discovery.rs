//! Finds the process that owns a project's journal.
//!
//! A client believes nothing in the state folder by itself. The process that holds the journal's lock has to
//! belong to the user, and so has the socket in the folder; a server without a socket is reached at the loopback
//! address in `server.json`, which has to name that process. `server.json` and `token` have to be private files.
//! Only then is the token sent. Files of a process that has ended are ignored.

use std::sync::Arc;
use std::time::Duration;

use antiphon_client::{
    Client, ClientConfig, ClientError, Endpoint, RetryPolicy, ServerJournal, Timeouts,
};

use super::server_record::{self, ServerRecord};
use super::{journal_owner, server_error};
use antiphon_project::error::ProjectError;
use antiphon_project::project::Project;

/// How long a server on this machine may take to accept a connection and to answer a health check.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// The server that owns the journal of a project.
#[derive(Debug, Clone)]
pub struct ProjectServer {
    /// Sends the requests.
    pub client: Client,
    /// The server's journal, when `--server` names the server. Absent for the server of this folder, whose
    /// journal is a file here.
    named: Option<Arc<ServerJournal>>,
}

impl ProjectServer {
    /// The server that `--server` names. Nothing is sent yet.
    pub fn named(client: Client) -> Self {
        let journal = ServerJournal::new(client.clone(), RetryPolicy::default());
        Self { client, named: Some(Arc::new(journal)) }
    }

    /// The journal of a server that `--server` names.
    pub fn named_journal(&self) -> Option<Arc<ServerJournal>> {
        self.named.clone()
    }

    /// Whether `--server` names it: its files are not files of this machine.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Why a read of its journal failed, if one did: the journal's own error does not tell a wrong token from a
    /// server that does not answer.
    pub fn journal_error(&self) -> Option<ProjectError> {
        let last_error = self.named.as_ref()?.last_error()?;
        Some(self.project_error(last_error))
    }

    /// The server that owns the project's journal, if there is one and it answers. Files that no server of
    /// this user can have written are an error.
    pub async fn find(project: &Project) -> Result<Option<Self>, ProjectError> {
        let Some(endpoint) = endpoint(project)? else { return Ok(None) };
        let token = server_record::token(project.state())?;
        let timeouts = Timeouts { connect: CONNECT_WAIT, ..Timeouts::default() };
        let config = ClientConfig { endpoint, token, timeouts };
        let client =
            Client::new(config).map_err(|error| ProjectError::Failed(error.to_string()))?;
        Ok(client.is_alive().await.then_some(Self { client, named: None }))
    }

    /// A failed request as an error of the project.
    pub fn project_error(&self, error: ClientError) -> ProjectError {
        server_error::project_error(self, error)
    }

    /// The answer to a request, or why it failed.
    pub fn answer<T>(&self, answer: Result<T, ClientError>) -> Result<T, ProjectError> {
        answer.map_err(|error| self.project_error(error))
    }
}

/// Where the process that owns the journal listens, if it is one of this user.
fn endpoint(project: &Project) -> Result<Option<Endpoint>, ProjectError> {
    let Some(owner) = journal_owner::owner_of(&project.journal_path()) else { return Ok(None) };
    if !journal_owner::is_users(owner) {
        return Ok(None);
    }
    if let Some(socket) = server_record::socket(project.state())? {
        return Ok(Some(Endpoint::Socket(socket)));
    }
    let record = ServerRecord::read(project.state())?;
    Ok(record.filter(|record| record.pid == owner).map(|record| record.endpoint))
}
