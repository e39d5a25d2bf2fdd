//! Agents that are exposed over A2A, and where push notifications may go.

use antiphon_core::AgentName;
use serde::Deserialize;

/// Settings of the A2A interface.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct A2aConfig {
    /// Agents that clients see, the one at the well-known address first. Absent: all, for clients on this machine alone.
    pub agents: Option<Vec<AgentName>>,
    /// Address of the server in agent cards. Absent: as the client names the server.
    pub url: Option<String>,
    /// Hosts that push notifications may go to beside public ones, as in rules about hosts.
    pub push_hosts: Vec<String>,
}
