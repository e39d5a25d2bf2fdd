//! The port to the definitions of agents.

use std::sync::Arc;

use crate::AgentDefinition;

/// Definitions of agents, shared.
pub type AgentList = Arc<[Arc<AgentDefinition>]>;

/// Looks up agents.
pub trait Agents: Send + Sync {
    /// The agent of this name, as it is defined now. `None` when there is none.
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>>;

    /// Every agent, ordered by name. The same list as before, as long as no agent has changed.
    fn list(&self) -> AgentList;

    /// Whether a person made or allowed this agent to run outside of the sandbox. The error names its
    /// file. An agent file that came with a project is not allowed by itself.
    fn unsandboxed(&self, name: &str) -> Result<(), UntrustedAgent> {
        let _ = name;
        Ok(())
    }

    /// Whether a task without an agent definition is told that it can call ad-hoc agents, where it can call no other.
    fn offers_ad_hoc(&self) -> bool {
        true
    }

    /// The whole system prompt of an agent: its context, its environment, the rules of the project.
    fn system_prompt(&self, own: PromptSource<'_>) -> String;
}

/// An agent that no person made or allowed: its file came with the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedAgent {
    /// Path of its file.
    pub path: String,
    /// Names the content of the file. Other content has another name.
    pub version: String,
}

/// What the system prompt of an agent is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromptSource<'a> {
    /// The context of a defined agent.
    Named(&'a AgentDefinition),
    /// The prompt of an ad-hoc agent; it follows the base prompt.
    AdHoc(&'a str),
}
