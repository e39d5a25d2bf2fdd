//! The principal of a request: the owner of the project, or the holder of an API key.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{AgentName, ErrorResponse, Provenance, Sender, SourceName};

use crate::request::request_error::invalid_request;

/// On whose authority a request is made. The default is the owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Principal {
    /// Id of the API key; absent for the owner. The key pays for the tasks of its requests.
    pub key_id: Option<String>,
    /// The agent that the key was issued to; absent for the owner and for a person's key.
    pub agent: Option<AgentName>,
    /// Whether the key has level `admin`.
    pub is_admin: bool,
}

impl Principal {
    /// Kind of the keys under which messages to tasks are sent.
    pub const TASK_MESSAGES: &str = "http-said";

    /// Kind of the keys under which sessions are imported.
    pub const IMPORTS: &str = "http-import";

    /// Kind of the keys under which sessions are forked.
    pub const FORKS: &str = "http-fork";

    /// Where a request of this principal comes from, as the journal records it.
    pub fn provenance(&self) -> Provenance {
        match (&self.agent, &self.key_id) {
            (Some(agent), _) => Provenance::Agent(agent.to_string()),
            (None, None) => Provenance::Owner,
            (None, Some(id)) if self.is_admin => Provenance::AdminKey(id.clone()),
            (None, Some(id)) => Provenance::WriteKey(id.clone()),
        }
    }

    /// The sender of messages that name none. An agent never speaks as the user.
    pub fn sender(&self) -> Result<Sender, ErrorResponse> {
        let Some(agent) = &self.agent else { return Ok(Sender::User) };
        let source = SourceName::parse(agent.as_str());
        source.map(Sender::External).map_err(|error| invalid_request(error.to_string()))
    }

    /// The idempotency key `key` among the requests of `kind`. Keys of different principals and of
    /// different kinds never collide.
    pub fn idempotency_key(&self, kind: &str, key: &str) -> IdempotencyKey {
        IdempotencyKey(match &self.key_id {
            None => format!("{kind}:{key}"),
            Some(id) => format!("{kind}@{id}:{key}"),
        })
    }
}
