//! Agents: their definitions, and the live ones.

use antiphon_api::{AgentDetail, AgentList, AgentPresence, AgentStarted, AgentStopped};
use antiphon_core::AgentName;

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// All agents that are defined.
    pub async fn agents(&self) -> Result<AgentList, ClientError> {
        self.get(&["v1", "agents"], Query::NONE).await
    }

    /// The definition of one agent, with its system prompt.
    pub async fn agent(&self, name: &AgentName) -> Result<AgentDetail, ClientError> {
        self.get(&["v1", "agents", name.as_str()], Query::NONE).await
    }

    /// Live agents, and their states.
    pub async fn agent_presences(&self) -> Result<Vec<AgentPresence>, ClientError> {
        self.get(&["v1", "agents", "status"], Query::NONE).await
    }

    /// Starts an agent. One that is live stays as it is.
    pub async fn start_agent(&self, name: &AgentName) -> Result<AgentStarted, ClientError> {
        self.command(&["v1", "agents", name.as_str(), "start"]).await
    }

    /// Stops an agent. One that is not live stays as it is.
    pub async fn stop_agent(&self, name: &AgentName) -> Result<AgentStopped, ClientError> {
        self.command(&["v1", "agents", name.as_str(), "stop"]).await
    }
}
