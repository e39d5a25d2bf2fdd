//! The port to permissions.
//!
//! The gate checks every tool call before it starts. It answers at once, from its own rules;
//! the orchestrator asks the person, records the decision and waits. A gate denies a call that it
//! cannot parse.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Checks tool calls.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Whether this call may run.
    fn judge(&self, call: &GateRequest<'_>) -> GateVerdict;

    /// Whether a call that only reads may run in a task that may only read, whatever its mode and its `allow` rules say.
    /// A gate without modes judges it as every other call.
    fn judge_reading(&self, call: &GateRequest<'_>) -> GateVerdict {
        self.judge(call)
    }

    /// What rules say about this call: `Allow` or `Deny`, `Ask` when a person has to be asked each time
    /// whatever was granted, and `None` when no rule covers it. Modes and defaults do not count. A gate without rules has nothing to say.
    fn judge_by_rules(&self, call: &GateRequest<'_>) -> Option<GateVerdict> {
        let _ = call;
        None
    }

    /// Grants a rule from now on, also after a restart. The error is a text
    /// for the person who granted it.
    async fn remember(&self, rule: &Rule) -> Result<(), String>;
}

/// A tool call to check.
#[derive(Debug, Clone, Copy)]
pub struct GateRequest<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Arguments of the call.
    pub arguments: &'a RawJson,
    /// Rules granted to this task only.
    pub granted: &'a [Rule],
}

/// Answer of the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// The call may run.
    Allow,
    /// A person decides.
    Ask {
        /// Why, in one sentence.
        reason: String,
        /// Rule that would allow this call and similar ones.
        rule: Rule,
    },
    /// The call may not run, and no person can allow it.
    Deny {
        /// Why, and what is allowed instead; the model reads it.
        reason: String,
    },
}

/// A permission rule, for instance `bash(git status *)`. Only the gate parses it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Rule(pub String);

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
