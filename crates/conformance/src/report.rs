//! The result of a suite.

use std::fmt;

/// Every check passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The checks that passed, by name.
    pub checks: Vec<&'static str>,
    /// The checks that the implementation cannot run.
    pub skipped: Vec<Skipped>,
}

impl Passed {
    /// Names of the skipped checks, for a test that states them.
    pub fn skipped_checks(&self) -> Vec<&'static str> {
        self.skipped.iter().map(|skipped| skipped.check).collect()
    }
}

/// A check that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Name of the check.
    pub check: &'static str,
    /// Why it was skipped.
    pub reason: String,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the check.
    pub check: &'static str,
    /// What was found, and what the contract requires.
    pub found: String,
}

/// The failed checks of a suite; at least one. Prints as a list, so that `unwrap` in a test
/// shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// Names of the failed checks.
    pub fn checks(&self) -> Vec<&'static str> {
        self.0.iter().map(|violation| violation.check).collect()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} violation(s) of the contract:", self.0.len())?;
        for Violation { check, found } in &self.0 {
            write!(f, "\n  {check}: {found}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violations {}
