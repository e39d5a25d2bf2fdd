//! One rule: `TOOL` or `TOOL(PATTERN)`.
//!
//! | tool                                    | pattern                                            |
//! |-----------------------------------------|----------------------------------------------------|
//! | `bash`                                  | words of a command, or `=` and a whole script      |
//! | `unsandboxed`                           | the same, for calls of `bash` without the sandbox  |
//! | `read`, `write`, `edit`, `grep`, `glob` | a path with `*`, `**`, `?`, `[…]`, `{…}`           |
//! | `network`                               | hosts and presets, separated by spaces             |
//! | any other                               | `ARGUMENT=VALUE`, with `*` in the value            |
//!
//! A match is certain, possible, or none. Rules that ask or deny apply to a possible match. Rules
//! that allow apply to a certain match only.

mod argument_pattern;
mod command_pattern;
mod path_pattern;
mod wildcard;

pub(crate) use argument_pattern::{ArgumentPattern, Arguments};
pub(crate) use command_pattern::{CommandPattern, Naming};
pub(crate) use path_pattern::{PathPattern, escape};
use wildcard::Wildcard;

use antiphon_hosts::{HostRule, host_rules};

use crate::call::FILE_TOOLS;

/// The name in rules for calls of `bash` that run without the sandbox. A rule for `bash` does not
/// allow these.
pub const UNSANDBOXED: &str = "unsandboxed";

/// Longest rule that can be remembered, in bytes. A longer one can only be granted for a task.
pub const RULE_BYTES_MAX: usize = 8 * 1024;

/// A parsed rule.
#[derive(Debug, Clone)]
pub(crate) struct ParsedRule {
    pub(crate) text: String,
    tool: Wildcard,
    pub(crate) scope: Scope,
}

/// Which calls of its tool a rule matches.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// Any call.
    Everything,
    /// Exactly this script, in this folder.
    Script(ExactScript),
    /// Commands that match the pattern.
    Command(CommandPattern),
    /// Files that match the pattern.
    Path(PathPattern),
    /// Calls with an argument that matches the pattern.
    Argument(ArgumentPattern),
    /// These hosts.
    Hosts(Vec<HostRule>),
}

/// A script, and the folder of the workspace that it runs in. In another folder the same text may run
/// other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExactScript {
    /// `None`: the workspace itself.
    pub(crate) folder: Option<String>,
    pub(crate) text: String,
}

impl ExactScript {
    /// The pattern of a rule for exactly this script.
    pub(crate) fn pattern(&self) -> String {
        match &self.folder {
            None => format!("={}", self.text),
            Some(folder) => format!("@{folder}={}", self.text),
        }
    }

    fn parse(pattern: &str) -> Option<Self> {
        if let Some(text) = pattern.strip_prefix('=') {
            return Some(Self { folder: None, text: text.to_owned() });
        }
        let (folder, text) = pattern.strip_prefix('@')?.split_once('=')?;
        Some(Self { folder: Some(folder.to_owned()), text: text.to_owned() })
    }
}

/// The name that rules about hosts have in place of a tool's.
pub const NETWORK: &str = "network";

/// Certainty of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    Possible,
    Certain,
}

impl From<bool> for Match {
    fn from(certain: bool) -> Self {
        if certain { Self::Certain } else { Self::No }
    }
}

impl ParsedRule {
    /// Parses `text`. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (tool, Some(pattern)),
                None => return Err("its `(` is not closed at the end".to_owned()),
            },
        };
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        if tool.is_empty() || !tool.chars().all(named) {
            return Err(format!(
                "`{tool}` is not the name of a tool: write letters, digits, `_`, `-` and `*`"
            ));
        }
        let scope = match pattern {
            None => Scope::Everything,
            Some(pattern) if pattern.trim().is_empty() => {
                return Err(format!("its pattern is empty: write `{tool}` for all of it"));
            }
            Some(pattern) => scope(tool, pattern)?,
        };
        Ok(Self { text: text.to_owned(), tool: Wildcard::plain(tool), scope })
    }

    /// Whether the rule names `tool`, also by a wildcard.
    pub(crate) fn is_for(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Whether the rule names its tool without a wildcard.
    pub(crate) fn names_tool(&self) -> bool {
        self.tool.is_literal()
    }

    /// Whether the rule matches every call of `tool`.
    pub(crate) fn is_whole(&self, tool: &str) -> bool {
        matches!(self.scope, Scope::Everything) && self.is_for(tool)
    }

    /// Whether the rule matches exactly this script in its folder, with or without the sandbox.
    pub(crate) fn is_this_script(&self, script: &ExactScript) -> bool {
        matches!(&self.scope, Scope::Script(exact) if exact == script)
    }

    /// Whether the rule matches exactly this script of `tool` in its folder.
    pub(crate) fn is_script(&self, tool: &str, script: &ExactScript) -> bool {
        self.is_for(tool) && self.is_this_script(script)
    }

    /// Whether the rule names this script, in whichever folder. For rules that restrict.
    pub(crate) fn has_text(&self, script: &ExactScript) -> bool {
        matches!(&self.scope, Scope::Script(exact) if exact.text == script.text)
    }

    /// The pattern for commands, if it has one.
    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.scope {
            Scope::Command(pattern) => Some(pattern),
            Scope::Everything
            | Scope::Script(_)
            | Scope::Path(_)
            | Scope::Argument(_)
            | Scope::Hosts(_) => None,
        }
    }

    /// The pattern for paths, if it has one.
    pub(crate) fn path(&self) -> Option<&PathPattern> {
        match &self.scope {
            Scope::Path(pattern) => Some(pattern),
            Scope::Everything
            | Scope::Script(_)
            | Scope::Command(_)
            | Scope::Argument(_)
            | Scope::Hosts(_) => None,
        }
    }

    /// The pattern for arguments, if it has one.
    pub(crate) fn argument(&self) -> Option<&ArgumentPattern> {
        match &self.scope {
            Scope::Argument(pattern) => Some(pattern),
            Scope::Everything
            | Scope::Script(_)
            | Scope::Command(_)
            | Scope::Path(_)
            | Scope::Hosts(_) => None,
        }
    }

    /// The hosts that the rule is about if it allows. A wildcard in place of a tool's name allows no
    /// host.
    pub(crate) fn allowed_hosts(&self) -> Vec<HostRule> {
        if self.names_tool() { self.restricted_hosts() } else { Vec::new() }
    }

    /// The hosts that the rule is about if it asks or denies.
    pub(crate) fn restricted_hosts(&self) -> Vec<HostRule> {
        match &self.scope {
            Scope::Hosts(hosts) => hosts.clone(),
            Scope::Everything if self.is_for(NETWORK) => vec![HostRule::any()],
            Scope::Everything
            | Scope::Script(_)
            | Scope::Command(_)
            | Scope::Path(_)
            | Scope::Argument(_) => Vec::new(),
        }
    }
}

fn scope(tool: &str, pattern: &str) -> Result<Scope, String> {
    if tool == "bash" || tool == UNSANDBOXED {
        return match ExactScript::parse(pattern) {
            Some(script) => Ok(Scope::Script(script)),
            None => CommandPattern::parse(pattern).map(Scope::Command),
        };
    }
    if FILE_TOOLS.contains(&tool) {
        return PathPattern::parse(pattern).map(Scope::Path);
    }
    if tool == NETWORK {
        return host_rules(pattern).map(Scope::Hosts).map_err(|error| error.to_string());
    }
    ArgumentPattern::parse(pattern).map(Scope::Argument)
}
