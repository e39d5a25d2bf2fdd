//! A2A 1.0: agents of the project as A2A servers, over JSON-RPC and HTTP+JSON.
//!
//! | route                                              | does                                                |
//! |----------------------------------------------------|-----------------------------------------------------|
//! | `GET /.well-known/agent-card.json`                 | the card of the first exposed agent                 |
//! | `GET /a2a/{agent}/.well-known/agent-card.json`     | the card of an agent                                |
//! | `GET /.well-known/jwks.json`                       | the public key that cards are signed with           |
//! | `POST /a2a/{agent}`                                | JSON-RPC                                            |
//! | `/a2a/{agent}/message:send`, `message:stream`, `tasks…`, `extendedAgentCard` | HTTP+JSON                 |
//!
//! A message becomes a task of the agent, a `contextId` is a session, and a `messageId` is sent once. A caller sees the
//! tasks that its own key pays for; the owner and `admin` keys see all tasks of the agent. Which agents are exposed is
//! the user's setting. A request for a hidden agent is answered as one for an agent that does not exist.

mod approval;
mod bindings;
mod card;
mod card_key;
mod error;
mod exposure;
mod message;
mod operations;
mod push;
mod reply;
mod requests;
mod task_view;
mod watcher;

use std::sync::Arc;

pub use antiphon_interface_transport::ExposedAgents;
use antiphon_interface_transport::{Interface, OwnWork};

pub use crate::card_key::{CardKey, CardKeyError};
pub use crate::exposure::A2aConfig;
pub use crate::push::PushError;
use crate::push::{PushService, PushSource};

/// Folder of push notification configurations, in the state folder.
const PUSH_FOLDER: &str = "a2a-push";

/// Why there is no A2A interface.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The stored push notification configurations cannot be read.
    #[error(transparent)]
    Push(#[from] PushError),
    /// There is no key for agent cards.
    #[error(transparent)]
    CardKey(#[from] CardKeyError),
}

/// The A2A interface of a server.
#[derive(Clone)]
pub struct A2a {
    pub(crate) config: Arc<A2aConfig>,
    pub(crate) card_key: Arc<CardKey>,
    pub(crate) push: PushService,
}

impl A2a {
    /// The interface with these settings. Reads the push notification configurations that are stored, and the key of cards.
    pub fn new(config: A2aConfig) -> Result<Self, OpenError> {
        let card_key = Arc::new(CardKey::in_state(&config.state)?);
        let push = PushService::open(config.state.join(PUSH_FOLDER), config.push_hosts.clone())?;
        Ok(Self { config: Arc::new(config), card_key, push })
    }

    /// Its routes. The cards need no credentials when the user lists the agents that are exposed.
    pub fn interface(&self) -> Interface {
        let a2a = self.clone();
        let open = match self.config.agents {
            ExposedAgents::Listed(_) => card::ROUTES.to_vec(),
            ExposedAgents::AllOnLoopback => Vec::new(),
        };
        let agent_writable = bindings::AGENT_WRITABLE.to_vec();
        let error_shapes = bindings::error_shapes();
        Interface {
            open,
            agent_writable,
            own_work: bindings::OWN_WORK.map(|route| (route, OwnWork::Handler)).into(),
            error_shapes,
            ..Interface::new(move || bindings::routes(a2a))
        }
    }

    /// Goes on with the push notifications that were not delivered when the last process ended.
    /// Those of a key that may no longer have them are dropped.
    pub fn resume_push(
        &self,
        orchestrator: &antiphon_runtime::Orchestrator,
        keys: Option<Arc<antiphon_keys::KeyRing>>,
    ) {
        self.push.resume(&PushSource { orchestrator: orchestrator.clone(), keys });
    }

    /// Ends the delivery of push notifications. The next process goes on with them.
    pub async fn shutdown(&self) {
        self.push.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use antiphon_interface_transport::openapi::undescribed_paths;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        let folder = tempfile::tempdir().unwrap();
        let a2a = A2a::new(A2aConfig::new(folder.path())).unwrap();
        assert_eq!(undescribed_paths(a2a.interface()), Vec::<String>::new());
    }
}
