//! What a user writes down about permissions.

use std::fmt;

use antiphon_core::port::Rule;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Permissions as they are configured. The strictest rule that matches a call decides; without
/// one, the mode does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What holds where no rule does.
    pub mode: Mode,
    /// What may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<RuleEntry>,
    /// What somebody is asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleEntry>,
    /// What never runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleEntry>,
}

/// What holds where no rule does, from the strictest on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Tools without effects run, nothing else does.
    ReadOnly,
    /// Tools for files run in the workspace, and commands in the sandbox; without a sandbox,
    /// commands that are not known to be harmless are asked about, as are tools of others.
    #[default]
    Workspace,
    /// Everything runs.
    Full,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Full => "full",
        })
    }
}

/// A rule as it is configured: a text, or a table with what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuleEntry {
    /// The rule.
    pub rule: Rule,
    /// Calls that it must match: commands for `bash`, paths for tools for files, and for others
    /// `TOOL` or `TOOL {"argument":"value"}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Calls that it must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// Why it is there; shown when it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&str> for RuleEntry {
    fn from(rule: &str) -> Self {
        Self { rule: Rule(rule.to_owned()), examples: Vec::new(), not: Vec::new(), reason: None }
    }
}

/// The table form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rule: Rule,
    #[serde(default)]
    examples: Vec<String>,
    #[serde(default)]
    not: Vec<String>,
    reason: Option<String>,
}

impl<'de> Deserialize<'de> for RuleEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = RuleEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule, as a text or a table with `rule`, `examples`, `not` and `reason`")
    }

    fn visit_str<E>(self, rule: &str) -> Result<RuleEntry, E> {
        Ok(rule.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleEntry, A::Error> {
        let Table { rule, examples, not, reason } =
            Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RuleEntry { rule, examples, not, reason })
    }
}

/// What an agent that works for another may do less. It can only take away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A stricter mode; a laxer one changes nothing.
    pub mode: Option<Mode>,
    /// What somebody is asked about, in addition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleEntry>,
    /// What never runs, in addition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleEntry>,
}

/// Why permissions cannot be used as they are configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Write the rule as it should be.
    #[error("the rule `{rule}` cannot be read: {reason}")]
    Rule {
        /// Which.
        rule: Rule,
        /// What is wrong with it.
        reason: String,
    },
    /// Correct the rule, or the example.
    #[error("the rule `{rule}` does not match its example `{example}`")]
    Example {
        /// Which rule.
        rule: Rule,
        /// Which example.
        example: String,
    },
    /// Narrow the rule, or correct the example.
    #[error("the rule `{rule}` matches `{example}`, which it says it does not")]
    CounterExample {
        /// Which rule.
        rule: Rule,
        /// Which example.
        example: String,
    },
    /// Give the workspace by its full path.
    #[error("the workspace `{root}` is not an absolute path in UTF-8")]
    Root {
        /// What was given.
        root: String,
    },
}
