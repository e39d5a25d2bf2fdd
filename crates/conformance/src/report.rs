//! What a suite found out.

use std::fmt;

/// The implementation keeps the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The checks that passed, by name.
    pub checks: Vec<&'static str>,
    /// The checks that the implementation cannot be put to.
    pub skipped: Vec<Skipped>,
}

impl Passed {
    /// Names of the checks that were skipped, for a test that states which may be.
    pub fn skipped_checks(&self) -> Vec<&'static str> {
        self.skipped.iter().map(|skipped| skipped.check).collect()
    }
}

/// A check that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub check: &'static str,
    /// Why.
    pub reason: String,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub check: &'static str,
    /// What was found instead of what the contract says.
    pub found: String,
}

/// All checks of a suite that failed; at least one. Prints as a list, so that `unwrap` in a test
/// shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// Names of the checks that failed.
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
