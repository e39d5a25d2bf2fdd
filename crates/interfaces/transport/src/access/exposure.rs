//! Agents that an interface for foreign clients shows, and to whom.

use antiphon_core::AgentName;
use antiphon_keys::Peer;
use antiphon_project::TaskFactory;
use axum::http::Extensions;

/// Agents that clients see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExposedAgents {
    /// These, for every client that can reach the server, in this order.
    Listed(Vec<AgentName>),
    /// All that are defined, for clients on this machine.
    AllOnLoopback,
}

impl ExposedAgents {
    /// The agents of a setting: those that it lists, or all for clients on this machine when it is absent.
    pub fn of_setting(listed: Option<&Vec<AgentName>>) -> Self {
        listed.map_or(Self::AllOnLoopback, |agents| Self::Listed(agents.clone()))
    }

    /// Agents that the client of a request sees: those that are defined, in the order of the setting. `request` has
    /// the extensions of the request.
    pub fn visible(&self, task_factory: &dyn TaskFactory, request: &Extensions) -> Vec<AgentName> {
        let defined = task_factory.agents();
        match self {
            Self::Listed(names) => {
                names.iter().filter(|name| defined.contains(name)).cloned().collect()
            }
            Self::AllOnLoopback if is_local(request) => defined,
            Self::AllOnLoopback => Vec::new(),
        }
    }
}

fn is_local(request: &Extensions) -> bool {
    match request.get::<Peer>() {
        Some(Peer::Socket) => true,
        Some(Peer::Address(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}
