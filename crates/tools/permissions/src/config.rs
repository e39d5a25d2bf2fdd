//! Configuration of permissions.

use std::fmt;

use antiphon_core::port::Rule;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::rule::ParsedRule;

/// Configured permissions. The strictest rule that matches a call decides; if none matches, the
/// mode decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionConfig {
    /// Default for calls that no rule matches.
    pub mode: PermissionMode,
    /// Calls that run without an approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<RuleEntry>,
    /// Calls that need an approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleEntry>,
    /// Calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleEntry>,
}

/// Default for calls that no rule matches, ordered from the strictest.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Only tools without effects run.
    ReadOnly,
    /// File tools run in the workspace, and commands run in the sandbox. The gate asks about
    /// external tools and, without a sandbox, about commands that are not known to be harmless.
    #[default]
    Workspace,
    /// Everything runs.
    Full,
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Full => "full",
        })
    }
}

/// A configured rule: a string, or a table with examples and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuleEntry {
    /// `TOOL` or `TOOL(PATTERN)`.
    pub rule: Rule,
    /// Calls that the rule must match: commands for `bash`, paths for file tools, and for other
    /// tools `TOOL` or `TOOL {"argument":"value"}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Calls that the rule must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// Why the rule exists; shown when the rule decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RuleEntry {
    /// Whether the rule names this tool, also by a wildcard. A rule that cannot be parsed names none.
    pub fn is_for(&self, tool: &str) -> bool {
        ParsedRule::parse(&self.rule.0).is_ok_and(|rule| rule.is_for(tool))
    }
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

/// Restrictions for a child agent, on top of the permissions of its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A stricter mode; a less strict one has no effect.
    pub mode: Option<PermissionMode>,
    /// Further calls that need an approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleEntry>,
    /// Further calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleEntry>,
}

/// Limits of the machine's administrator. No mode, no rule of a user and no approval for more than one call
/// overrides them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyRules {
    /// Calls that a person has to allow one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleEntry>,
    /// Calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleEntry>,
    /// The only hosts that commands may reach; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostLimit>,
}

/// The only hosts that commands may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLimit {
    /// Hosts and presets, as in `network(HOST)`.
    pub hosts: Vec<String>,
    /// Where the limit is written; shown when it decides.
    pub origin: String,
}

/// Why configured permissions are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The rule has a syntax error: correct it.
    #[error("the rule `{rule}` cannot be read: {reason}")]
    Rule {
        /// The invalid rule.
        rule: Rule,
        /// What is wrong with it.
        reason: String,
    },
    /// The rule does not match its example: correct one of them.
    #[error("the rule `{rule}` does not match its example `{example}`")]
    Example {
        /// The rule that does not match.
        rule: Rule,
        /// The example that should match.
        example: String,
    },
    /// The rule matches a counterexample: narrow the rule, or correct the example.
    #[error("the rule `{rule}` matches `{example}`, which it says it does not")]
    CounterExample {
        /// The rule that matches too much.
        rule: Rule,
        /// The example that should not match.
        example: String,
    },
    /// The workspace path is relative or not UTF-8.
    #[error("the workspace `{root}` is not an absolute path in UTF-8")]
    Root {
        /// The configured path.
        root: String,
    },
}
