//! Agents: their definitions, and the live ones.

use antiphon_api::{
    AgentChange, AgentDetail, AgentList, AgentPresence, AgentStarted, AgentStopped, CreateAgent,
    PresenceQuery,
};
use antiphon_core::AgentName;
use reqwest::Method;

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

    /// Defines an agent in a file of the project. With the same `key` it is the same agent.
    pub async fn define_agent(
        &self,
        agent: &CreateAgent,
        key: Option<&str>,
    ) -> Result<AgentDetail, ClientError> {
        self.post(&["v1", "agents"], agent, key).await
    }

    /// Changes the definition of an agent of the project.
    pub async fn change_agent(
        &self,
        name: &AgentName,
        change: &AgentChange,
    ) -> Result<AgentDetail, ClientError> {
        let path = ["v1", "agents", name.as_str()];
        let request = self.request(Method::PUT, &path, Query::NONE)?;
        self.send_json(request, change, None).await
    }

    /// Stops an agent of the project and deletes its definition.
    pub async fn delete_agent(&self, name: &AgentName) -> Result<(), ClientError> {
        let path = ["v1", "agents", name.as_str()];
        self.send(self.request(Method::DELETE, &path, Query::NONE)?).await?;
        Ok(())
    }

    /// A page of live agents and their states, the one with the newest task first.
    pub async fn agent_presences(
        &self,
        query: &PresenceQuery,
    ) -> Result<Vec<AgentPresence>, ClientError> {
        self.get(&["v1", "agents", "status"], Query::of(query)?).await
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
