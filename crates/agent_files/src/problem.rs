//! What is wrong with an agent's file, and where.

use std::fmt;
use std::path::PathBuf;

/// Why a text is no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Fault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Fault {
    pub(crate) fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// A file or folder that is not as it should be. Prints as `FILE:LINE: reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, counted from 1; absent for what is wrong with the whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// Whether what it said before is still in force.
    pub in_force: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason)?;
        if self.in_force {
            f.write_str(" (what it said before stays in force)")?;
        }
        Ok(())
    }
}
