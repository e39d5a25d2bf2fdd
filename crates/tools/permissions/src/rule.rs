//! One rule: `TOOL` or `TOOL(PATTERN)`.
//!
//! | tool                                    | pattern                                            |
//! |-----------------------------------------|----------------------------------------------------|
//! | `bash`                                  | words of a command, or `=` and a whole script      |
//! | `read`, `write`, `edit`, `grep`, `glob` | a path with `*`, `**`, `?`, `[…]`, `{…}`           |
//! | any other                               | `ARGUMENT=VALUE`, with `*` in the value            |
//!
//! A match is certain, possible, or none. What is possible matters to rules that ask or deny;
//! only what is certain is allowed.

mod argument_pattern;
mod command_pattern;
mod path_pattern;
mod wildcard;

pub(crate) use argument_pattern::{ArgumentPattern, Arguments};
pub(crate) use command_pattern::{CommandPattern, Naming};
pub(crate) use path_pattern::{PathPattern, escape};
use wildcard::Wildcard;

use crate::call::FILE_TOOLS;

/// Longest rule that is remembered, in bytes. A longer one can only be granted for a task.
pub const RULE_BYTES_MAX: usize = 8 * 1024;

/// A rule that was read.
#[derive(Debug, Clone)]
pub(crate) struct ParsedRule {
    pub(crate) text: String,
    tool: Wildcard,
    pub(crate) about: About,
}

/// What a rule is about, beside the tool.
#[derive(Debug, Clone)]
pub(crate) enum About {
    /// Any call.
    Everything,
    /// This very script.
    Script(String),
    /// Commands like this.
    Command(CommandPattern),
    /// Files like this.
    Path(PathPattern),
    /// Calls with an argument like this.
    Argument(ArgumentPattern),
}

/// How sure a match is.
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
    /// Reads `text`, or says what is wrong with it.
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
        let about = match pattern {
            None => About::Everything,
            Some(pattern) if pattern.trim().is_empty() => {
                return Err(format!("its pattern is empty: write `{tool}` for all of it"));
            }
            Some(pattern) => about(tool, pattern)?,
        };
        Ok(Self { text: text.to_owned(), tool: Wildcard::plain(tool), about })
    }

    /// Whether it is about `tool` at all.
    pub(crate) fn is_for(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Whether it names its tool in full.
    pub(crate) fn names_tool(&self) -> bool {
        self.tool.is_literal()
    }

    /// Whether it is about every call of `tool`.
    pub(crate) fn is_whole(&self, tool: &str) -> bool {
        matches!(self.about, About::Everything) && self.is_for(tool)
    }

    /// Whether it is about `bash` and this very script.
    pub(crate) fn is_script(&self, script: &str) -> bool {
        matches!(&self.about, About::Script(text) if text == script)
    }

    /// The pattern for commands, if it has one.
    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.about {
            About::Command(pattern) => Some(pattern),
            About::Everything | About::Script(_) | About::Path(_) | About::Argument(_) => None,
        }
    }

    /// The pattern for paths, if it has one.
    pub(crate) fn path(&self) -> Option<&PathPattern> {
        match &self.about {
            About::Path(pattern) => Some(pattern),
            About::Everything | About::Script(_) | About::Command(_) | About::Argument(_) => None,
        }
    }

    /// The pattern for arguments, if it has one.
    pub(crate) fn argument(&self) -> Option<&ArgumentPattern> {
        match &self.about {
            About::Argument(pattern) => Some(pattern),
            About::Everything | About::Script(_) | About::Command(_) | About::Path(_) => None,
        }
    }
}

fn about(tool: &str, pattern: &str) -> Result<About, String> {
    if tool == "bash" {
        return match pattern.strip_prefix('=') {
            Some(script) => Ok(About::Script(script.to_owned())),
            None => CommandPattern::parse(pattern).map(About::Command),
        };
    }
    if FILE_TOOLS.contains(&tool) {
        return PathPattern::parse(pattern).map(About::Path);
    }
    ArgumentPattern::parse(pattern).map(About::Argument)
}
