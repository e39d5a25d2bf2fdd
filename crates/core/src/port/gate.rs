//! The port to permissions: may this call run?
//!
//! The gate sees every call of a tool before it starts. It answers at once and from what it knows
//! alone; asking a person, writing the decision down and waiting are the orchestrator's. A gate
//! that cannot make sense of a call denies it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Judges calls.
#[async_trait]
pub trait Gate: Send + Sync {
    /// May this call run?
    fn judge(&self, call: &GateRequest<'_>) -> Verdict;

    /// Somebody allowed this rule always: it holds from now on, also after a restart. An error is
    /// what to tell the person.
    async fn remember(&self, rule: &Rule) -> Result<(), String>;
}

/// A call that wants to run.
#[derive(Debug, Clone, Copy)]
pub struct GateRequest<'a> {
    /// Which tool.
    pub tool: &'a str,
    /// With what.
    pub arguments: &'a RawJson,
    /// Rules that somebody allowed for this task alone.
    pub granted: &'a [Rule],
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// Somebody has to be asked.
    Ask {
        /// Why, in a sentence.
        reason: String,
        /// The rule that would allow it and its like from now on.
        rule: Rule,
    },
    /// It may not, whoever is asked.
    Deny {
        /// Why, and what would be allowed instead; the model reads it.
        reason: String,
    },
}

/// A permission as it is written down: `bash(git status *)`. Only the gate reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Rule(pub String);

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
