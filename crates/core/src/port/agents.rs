//! The port to the definitions of agents.

use std::sync::Arc;

use crate::AgentDefinition;

/// Looks up agents.
pub trait Agents: Send + Sync {
    /// The agent of this name, as it is defined now. `None` when there is none.
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>>;

    /// Every agent, ordered by name.
    fn list(&self) -> Vec<Arc<AgentDefinition>>;

    /// The whole system prompt of an agent: its context, its environment, the rules of the project.
    fn system_prompt(&self, own: PromptSource<'_>) -> String;
}

/// What the system prompt of an agent is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromptSource<'a> {
    /// The context of a defined agent.
    Named(&'a AgentDefinition),
    /// The prompt of an ad-hoc agent; it follows the base prompt.
    AdHoc(&'a str),
}
