//! Agents that clients of OpenAI's and Anthropic's APIs may name.

use antiphon_core::AgentName;
use serde::Deserialize;

/// Settings of chat completions, responses, messages and the list of models.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChatConfig {
    /// Agents that clients see. Absent: all, for clients on this machine alone.
    pub agents: Option<Vec<AgentName>>,
}
