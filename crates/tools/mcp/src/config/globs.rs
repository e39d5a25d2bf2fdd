//! Patterns for the names of tools: `*`, `?`, `[…]` and `{a,b}`.

use std::fmt;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Deserializer, de};

/// Validated patterns. An empty list matches nothing.
#[derive(Clone, Default)]
pub struct ToolGlobs {
    patterns: Vec<String>,
    set: GlobSet,
}

/// A pattern with a syntax error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern for tools: {reason}")]
pub struct GlobError {
    /// The invalid pattern.
    pub pattern: String,
    /// Description of the syntax error.
    pub reason: String,
}

impl ToolGlobs {
    /// Parses patterns.
    pub fn new<I>(patterns: I) -> Result<Self, GlobError>
    where
        I: IntoIterator<Item: Into<String>>,
    {
        let patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
        let mut set = GlobSetBuilder::new();
        for pattern in &patterns {
            let glob = Glob::new(pattern).map_err(|error| GlobError {
                pattern: pattern.clone(),
                reason: error.kind().to_string(),
            })?;
            set.add(glob);
        }
        let built = set.build().map_err(|error| GlobError {
            pattern: patterns.join(", "),
            reason: error.kind().to_string(),
        })?;
        Ok(Self { patterns, set: built })
    }

    /// Whether a pattern matches the whole name of the tool.
    pub fn matches(&self, tool: &str) -> bool {
        self.set.is_match(tool)
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The patterns as configured.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

impl fmt::Debug for ToolGlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.patterns.fmt(f)
    }
}

impl PartialEq for ToolGlobs {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl<'de> Deserialize<'de> for ToolGlobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::<String>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolGlobs;

    #[test]
    fn a_pattern_matches_the_whole_name_and_nothing_matches_no_pattern() {
        let globs = ToolGlobs::new(["get_*", "read"]).unwrap();
        assert!(globs.matches("get_time") && globs.matches("read"));
        assert!(!globs.matches("forget_time") && !globs.matches("read_all"));
        assert!(!ToolGlobs::default().matches("anything"));
    }

    #[test]
    fn a_star_also_takes_slashes_and_dots() {
        assert!(ToolGlobs::new(["fs*"]).unwrap().matches("fs/read.file"));
    }

    #[test]
    fn a_text_that_is_no_pattern_is_named() {
        let error = ToolGlobs::new(["ok", "[oops"]).unwrap_err();
        assert_eq!(error.pattern, "[oops");
    }
}
