//! The configuration of a server: its dependencies, its credentials and its interfaces. Without API keys only
//! the token is accepted. Without telemetry nothing is counted.

use std::sync::Arc;

use antiphon_project::TaskFactory;
use antiphon_runtime::Orchestrator;
use antiphon_telemetry::Telemetry;

use crate::access::api_keys::Keys;
use crate::access::exposure::ExposedAgents;
use crate::access::token::Token;
use crate::interface::Interface;
use crate::limits::ServerLimits;

/// What the handlers of every interface depend on.
#[derive(Clone)]
pub struct ServerDeps {
    /// Runs the tasks.
    pub orchestrator: Orchestrator,
    /// Builds tasks from requests.
    pub task_factory: Arc<dyn TaskFactory>,
    /// The owner's token.
    pub token: Token,
    /// Host names of this server beside those of the loopback: `name`, or `name:port`.
    pub hosts: Vec<String>,
    /// Limits of the server.
    pub limits: ServerLimits,
}

/// The configuration of a server.
pub struct ServerConfig {
    /// What handlers depend on.
    pub deps: ServerDeps,
    /// API keys that are accepted beside the token.
    pub keys: Option<Keys>,
    /// Counts requests. Its creator lets it follow the journal.
    pub telemetry: Option<Telemetry>,
    /// Agents that clients of OpenAI's and Anthropic's APIs may name.
    pub chat_agents: ExposedAgents,
    /// All routes that are served, beside `/openapi.json` and `/docs`.
    pub interface: Interface,
}

impl ServerConfig {
    /// A server of `interface` without API keys and telemetry.
    pub fn new(deps: ServerDeps, interface: Interface) -> Self {
        let chat_agents = ExposedAgents::AllOnLoopback;
        Self { deps, keys: None, telemetry: None, chat_agents, interface }
    }
}
