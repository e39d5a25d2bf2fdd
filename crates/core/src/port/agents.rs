//! The port to the definitions of agents.

use std::sync::Arc;

use crate::AgentDefinition;

/// Knows who there is.
pub trait Agents: Send + Sync {
    /// The agent of this name, as it is defined now.
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>>;

    /// Every agent, ordered by name.
    fn list(&self) -> Vec<Arc<AgentDefinition>>;

    /// The whole scene of an agent: what it is told, where it works, the rules of the project.
    fn system_prompt(&self, own: PromptSource<'_>) -> String;
}

/// What an agent is told of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromptSource<'a> {
    /// The context of a defined agent.
    Named(&'a AgentDefinition),
    /// What was made up on the spot; it stands behind the base prompt.
    AdHoc(&'a str),
}
