//! Finds the process that owns a project's journal.
//!
//! A client believes nothing in the state folder by itself. The process that holds the journal's lock has to
//! belong to the user, and so has the socket in the folder; a server without a socket is reached at the loopback
//! address in `server.json`, which has to name that process. `server.json` and `token` have to be private files.
//! Only then is the token sent. Files that a dead process left are ignored.

use std::sync::Arc;
use std::time::Duration;

use antiphon_client::{
    Client, ClientConfig, ClientError, Endpoint, RetryPolicy, ServerJournal, Timeouts,
};

use super::server_record::{self, ServerRecord};
use super::{journal_owner, server_failure};
use crate::failure::Failure;
use antiphon_project::project::Project;

/// How long a server on this machine may take to accept a connection and to report that it is alive.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// The server that owns the journal of a project.
#[derive(Debug, Clone)]
pub(crate) struct ProjectServer {
    pub(crate) client: Client,
    /// The server's journal, when `--server` names the server. Absent for the server of this folder, whose
    /// journal is a file here.
    named: Option<Arc<ServerJournal>>,
}

impl ProjectServer {
    /// The server that `--server` names. Nothing is sent yet.
    pub(crate) fn named(client: Client) -> Self {
        let journal = ServerJournal::new(client.clone(), RetryPolicy::default());
        Self { client, named: Some(Arc::new(journal)) }
    }

    /// The journal of a server that `--server` names.
    pub(crate) fn named_journal(&self) -> Option<Arc<ServerJournal>> {
        self.named.clone()
    }

    pub(crate) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// A failed command with the server's own reason, if a read of its journal failed: the journal's error
    /// does not tell a wrong token from a server that does not answer.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let last_error = self.named.as_ref().and_then(|journal| journal.last_error());
        last_error.map_or(failure, |error| self.failure(error))
    }

    /// The server that owns the project's journal, if there is one and it answers. Files that no server of
    /// this user can have written are an error.
    pub(crate) async fn find(project: &Project) -> Result<Option<Self>, Failure> {
        let Some(endpoint) = endpoint(project)? else { return Ok(None) };
        let token = server_record::token(project.state())?;
        let timeouts = Timeouts { connect: CONNECT_WAIT, ..Timeouts::default() };
        let config = ClientConfig { endpoint, token, timeouts };
        let client = Client::new(config).map_err(|error| Failure::failed(error.to_string()))?;
        Ok(client.is_alive().await.then_some(Self { client, named: None }))
    }

    /// A failed request as a failure of the command.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        server_failure::failure(self, error)
    }

    /// The answer to a request, or the failure of the command.
    pub(crate) fn answer<T>(&self, answer: Result<T, ClientError>) -> Result<T, Failure> {
        answer.map_err(|error| self.failure(error))
    }
}

/// Where the process that owns the journal listens, if it is one of this user.
fn endpoint(project: &Project) -> Result<Option<Endpoint>, Failure> {
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
