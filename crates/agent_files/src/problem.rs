//! Problems of agent files, with their line.

use std::fmt;
use std::path::PathBuf;

/// Why a text is not an agent that takes effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct AgentFileError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub reason: String,
    /// Whether the text is invalid, or valid and refused.
    pub kind: ProblemKind,
}

/// What kind of problem a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// It cannot be read, or is not a valid agent.
    Invalid,
    /// It is a valid agent that the [`FileCheck`](crate::FileCheck) refuses.
    NotTrusted,
    /// It was written for another program, and is not an agent here.
    Foreign,
}

impl AgentFileError {
    pub(crate) fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), kind: ProblemKind::Invalid }
    }

    /// Of content that a reader outside of this crate refuses.
    pub fn refused(line: usize, reason: impl Into<String>) -> Self {
        Self::new(line, reason)
    }

    /// The same of a file that was written for another program.
    pub(crate) fn of_foreign_file(self) -> Self {
        Self { kind: ProblemKind::Foreign, ..self }
    }

    /// Of a file that is refused as a whole.
    pub(crate) fn not_trusted(reason: String) -> Self {
        Self { line: 1, reason, kind: ProblemKind::NotTrusted }
    }
}

/// A problem of a file or folder. Prints as `FILE:LINE: reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Line number, from 1; absent when the whole file or folder is concerned.
    pub line: Option<usize>,
    /// The reason.
    pub reason: String,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// Whether the last valid version is still in force.
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
