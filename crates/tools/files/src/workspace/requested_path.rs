//! Parses a path from a model.

use std::path::{Path, PathBuf};

use super::PathError;

/// Longest path, in bytes. The system counts one more, for the end.
pub const PATH_BYTES_MAX: usize = 4095;

/// Rejects paths that cannot exist.
pub(super) fn parse(path: &str) -> Result<PathBuf, PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    if path == "~" || path.starts_with("~/") {
        return Err(PathError::Tilde);
    }
    Ok(Path::new(path).to_owned())
}
