//! Definitions of agents: who somebody is, before anybody is at work.
//!
//! An agent is a markdown file: what it may do and how it runs in front, its context as the text.
//! Reading the file is an adapter's; what it means is here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentName, ModelRef, RawJson, RunnerConfig, SilentIntents, TaskLimits};

/// Longest context of an agent, in bytes.
pub const CONTEXT_BYTES_MAX: usize = 256 * 1024;

/// Longest description of an agent, in bytes: others read it whenever they may call it.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;

/// Who an agent is.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// What others call it.
    pub name: AgentName,
    /// What it is good for; whoever may call it reads this.
    pub description: String,
    /// How it runs.
    pub profile: Profile,
    /// Who answers; the caller's model when absent.
    pub model: Option<ModelRef>,
    /// Who answers when that one cannot, in order.
    pub fallbacks: Vec<ModelRef>,
    /// The tools it wants; all that its caller has when absent. It never gets more than these.
    pub tools: Option<Vec<String>>,
    /// The agents it may call.
    pub agents: CallableAgents,
    /// Where it may run, the best first; here when empty.
    pub runtimes: Vec<Runtime>,
    /// How far it may go.
    pub limits: TaskLimits,
    /// Requests that never wake it.
    pub silent_intents: SilentIntents,
    /// JSON Schemas of what comes with requests, by their intents. What is not here may come with
    /// anything.
    pub intents: BTreeMap<String, RawJson>,
    /// JSON Schema of its result.
    pub output_schema: Option<RawJson>,
    /// Its context: what it is told before anything else.
    pub context: String,
}

impl AgentDefinition {
    /// An agent of that name and context, with nothing else said of it.
    pub fn new(name: AgentName, context: impl Into<String>) -> Self {
        Self {
            name,
            description: String::new(),
            profile: Profile::Native,
            model: None,
            fallbacks: Vec::new(),
            tools: None,
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
    /// In our own loop.
    #[default]
    Native,
}

/// The agents that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallableAgents {
    /// Every one that is defined, and ones made on the spot.
    Any,
    /// These, and nobody made on the spot. An empty list is nobody.
    Only(Vec<String>),
}

impl CallableAgents {
    /// Whether it may call the agent of this name; `None` is one made on the spot.
    pub fn allows(&self, name: Option<&str>) -> bool {
        match (self, name) {
            (Self::Any, _) => true,
            (Self::Only(names), Some(name)) => names.iter().any(|allowed| allowed == name),
            (Self::Only(_), None) => false,
        }
    }

    /// Whether it may call nobody at all.
    pub fn is_nobody(&self) -> bool {
        *self == Self::Only(Vec::new())
    }
}

impl Default for CallableAgents {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

/// Where an agent may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Runtime {
    /// In the orchestrator that was asked.
    Local,
    /// In a runner.
    Runner(RunnerConfig),
}

impl Runtime {
    /// The word for it: `local`, or the runner's kind.
    pub fn kind(&self) -> &str {
        match self {
            Self::Local => "local",
            Self::Runner(runner) => &runner.kind,
        }
    }
}
