//! Sessions: listed, read, imported, forked.

use antiphon_api::{SessionDetail, SessionFile, SessionImported, SessionList, SessionQuery};
use antiphon_core::SessionId;

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// Sessions, the one with the newest task first.
    pub async fn sessions(&self, query: &SessionQuery) -> Result<SessionList, ClientError> {
        self.get(&["v1", "sessions"], Query::of(query)?).await
    }

    /// One session with its messages.
    pub async fn session(&self, session_id: &SessionId) -> Result<SessionDetail, ClientError> {
        self.get(&["v1", "sessions", session_id.as_str()], Query::NONE).await
    }

    /// Imports a session file. With the same `key` it is the same session.
    pub async fn import_session(
        &self,
        file: &SessionFile,
        key: Option<&str>,
    ) -> Result<SessionImported, ClientError> {
        self.post(&["v1", "sessions"], file, key).await
    }

    /// Creates a session that begins with the messages of another one.
    pub async fn fork_session(
        &self,
        session_id: &SessionId,
        key: Option<&str>,
    ) -> Result<SessionImported, ClientError> {
        let path = ["v1", "sessions", session_id.as_str(), "fork"];
        match key {
            Some(key) => self.keyed_command(&path, key).await,
            None => self.command(&path).await,
        }
    }
}
