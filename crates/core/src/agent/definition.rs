//! Definitions of agents.
//!
//! An agent is a markdown file: front matter with its rights and options, and its context as the
//! text. An adapter reads the file; this module defines the meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentName, ModelRef, RawJson, RunnerConfig, SilentIntents, TaskLimits};

/// Longest context of an agent, in bytes.
pub const CONTEXT_BYTES_MAX: usize = 256 * 1024;

/// Longest description of an agent, in bytes: every agent that may call it reads the description.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;

/// Definition of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// Name of the agent, unique in a project.
    pub name: AgentName,
    /// What the agent is good for; agents that may call it read this.
    pub description: String,
    /// How the agent runs.
    pub profile: Profile,
    /// Model of the agent. `None`: the model of the caller.
    pub model: Option<ModelRef>,
    /// Models to use, in order, when that one is not available.
    pub fallbacks: Vec<ModelRef>,
    /// Names of its tools. `None`: every tool. Its permissions are at most its caller's.
    pub tools: Option<Vec<String>>,
    /// Names of tools that change something and whose calls of one answer still run side by side.
    pub parallel_tools: Vec<String>,
    /// Agents it may call.
    pub agents: CallableAgents,
    /// Runtimes it may run in, the preferred one first. Empty: this orchestrator.
    pub runtimes: Vec<Runtime>,
    /// Limits of its tasks.
    pub limits: TaskLimits,
    /// Intents of requests that never wake it.
    pub silent_intents: SilentIntents,
    /// JSON Schemas of the parameters of requests, by intent. An intent without a schema takes any
    /// parameters.
    pub intents: BTreeMap<String, RawJson>,
    /// JSON Schema of its result. `None`: any result.
    pub output_schema: Option<RawJson>,
    /// Its context: the start of its system prompt.
    pub context: String,
}

impl AgentDefinition {
    /// An agent with this name and context, and defaults for everything else.
    pub fn new(name: AgentName, context: impl Into<String>) -> Self {
        Self {
            name,
            description: String::new(),
            profile: Profile::Native,
            model: None,
            fallbacks: Vec::new(),
            tools: None,
            parallel_tools: Vec::new(),
            agents: CallableAgents::default(),
            runtimes: Vec::new(),
            limits: TaskLimits::default(),
            silent_intents: SilentIntents::default(),
            intents: BTreeMap::new(),
            output_schema: None,
            context: context.into(),
        }
    }
}

/// How an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// In the orchestrator's own loop.
    #[default]
    Native,
}

/// Agents that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallableAgents {
    /// Every defined agent, and ad-hoc agents.
    #[serde(alias = "anybody")]
    Any,
    /// The named agents, and no ad-hoc agents. An empty list allows no agent.
    Only(Vec<String>),
}

impl CallableAgents {
    /// Whether it may call the agent of this name; `None` stands for an ad-hoc agent.
    pub fn allows(&self, name: Option<&str>) -> bool {
        match (self, name) {
            (Self::Any, _) => true,
            (Self::Only(names), Some(name)) => names.iter().any(|allowed| allowed == name),
            (Self::Only(_), None) => false,
        }
    }

    /// Whether it may call no agent at all.
    pub fn allows_none(&self) -> bool {
        *self == Self::Only(Vec::new())
    }
}

impl Default for CallableAgents {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

/// A place where an agent may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runtime {
    /// In this orchestrator.
    Local,
    /// In a runner.
    Runner(RunnerConfig),
}

impl Runtime {
    /// `local`, or the kind of the runner.
    pub fn kind(&self) -> &str {
        match self {
            Self::Local => "local",
            Self::Runner(runner) => &runner.kind,
        }
    }
}
