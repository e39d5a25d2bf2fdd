//! Agents that are exposed over MCP.

use antiphon_core::AgentName;
use serde::Deserialize;

/// Settings of the MCP interface.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// Agents that clients see. Absent: all, for clients on this machine alone.
    pub agents: Option<Vec<AgentName>>,
}
