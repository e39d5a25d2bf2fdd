//! Formats paths for models and users.

use std::fmt;
use std::path::Path;

use antiphon_core::escaped;

/// Displays a path in backticks. Escapes invisible characters, so that different paths look
/// different.
pub(crate) struct DisplayPath<'a>(pub(crate) &'a Path);

impl fmt::Display for DisplayPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", escaped(&self.0.to_string_lossy()))
    }
}
