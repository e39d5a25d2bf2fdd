//! Formats paths for models and users.

use std::fmt::{self, Write};
use std::path::Path;

use antiphon_core::visible;

/// Displays a path in backticks. Escapes invisible characters, so that different paths look
/// different.
pub(crate) struct DisplayPath<'a>(pub(crate) &'a Path);

impl fmt::Display for DisplayPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('`')?;
        for c in self.0.to_string_lossy().chars() {
            if c.is_control() || visible(c.encode_utf8(&mut [0; 4])).is_empty() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        f.write_char('`')
    }
}
