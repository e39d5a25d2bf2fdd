//! Patterns for paths.

use globset::{GlobBuilder, GlobMatcher};

use super::Match;
use crate::normalized_path::{NormalizedPath, normalize_pattern};

/// A path with `*` (does not match a slash), `**`, `?`, `[…]` and `{…}`.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: GlobMatcher,
    absolute: bool,
    exact: bool,
    /// The folders of the pattern, from the outermost, as far as they are written out.
    folder: String,
}

impl PathPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim();
        if pattern.starts_with('~') {
            return Err("`~` is not known here: write the path in full".to_owned());
        }
        let Some(path) = normalize_pattern(pattern) else {
            return Err("it leads out of the workspace: write the path in full".to_owned());
        };
        let glob = GlobBuilder::new(&path)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self {
            glob: glob.compile_matcher(),
            absolute: path.starts_with('/'),
            exact: is_exact(&path),
            folder: folder_of(&path),
        })
    }

    /// Whether the path matches.
    pub(crate) fn matches(&self, resolved: &NormalizedPath) -> Match {
        let path =
            if self.absolute { Some(&resolved.absolute) } else { resolved.relative.as_ref() };
        Match::from(path.is_some_and(|path| self.glob.is_match(path)))
    }

    /// Whether a file in the folder `resolved` may match.
    pub(crate) fn matches_within(&self, resolved: &NormalizedPath) -> bool {
        let path = if self.absolute {
            Some(resolved.absolute.as_str())
        } else {
            resolved.relative.as_deref()
        };
        let Some(path) = path else { return false };
        let is_in = |inner: &str, outer: &str| {
            outer.is_empty()
                || inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let path = if path == "." { "" } else { path.trim_end_matches('/') };
        // `migrations` has what `migrations/**` matches, and so has the folder that contains it.
        let deeper = || {
            let pattern = self.glob.glob().glob();
            pattern.contains("**") || pattern.matches('/').count() > path.matches('/').count()
        };
        is_in(&self.folder, path) || (!self.exact && is_in(path, &self.folder) && deeper())
    }

    /// Whether the pattern matches exactly one path.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }
}

/// A pattern that only `path` matches.
pub(crate) fn escape(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if is_special(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn is_special(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!')
}

/// The part of a pattern before its first component with a wildcard.
fn folder_of(pattern: &str) -> String {
    let parts = pattern.split('/').take_while(|part| is_exact(part));
    parts.collect::<Vec<_>>().join("/")
}

fn is_exact(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().all(|c| {
        let plain = escaped || !matches!(c, '*' | '?' | '[' | '{');
        escaped = c == '\\' && !escaped;
        plain
    })
}
