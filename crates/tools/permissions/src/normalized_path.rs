//! Lexical paths. Nothing here reads the disk.
//!
//! Rules match whole components of a path without `.`, `..` and doubled slashes. The tools
//! resolve symbolic links beneath the workspace.

/// Folders that no rule allows writing to: their files decide which programs run
/// next, or what the gate allows.
pub const PROTECTED: [&str; 3] = [".git", ".antiphon", ".ideai"];

/// A path without `.`, `..` and doubled slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NormalizedPath {
    /// The absolute path.
    pub(crate) absolute: String,
    /// The path relative to the workspace, if it is inside; the workspace itself is `.`.
    pub(crate) relative: Option<String>,
}

impl NormalizedPath {
    /// Resolves `path` from the folder `base`; `root` is absolute and normalized.
    pub(crate) fn of(root: &str, base: &str, path: &str) -> Self {
        let absolute = normalize(&join(root, &join(base, path)));
        let relative = if absolute == root {
            Some(".".to_owned())
        } else if root == "/" {
            absolute.strip_prefix('/').map(str::to_owned)
        } else {
            absolute.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned)
        };
        Self { absolute, relative }
    }

    /// The relative path if there is one, otherwise the absolute path.
    pub(crate) fn shown(&self) -> &str {
        self.relative.as_deref().unwrap_or(&self.absolute)
    }

    /// The protected folder that contains the path. Ignores case, because some file systems do.
    pub(crate) fn protected(&self) -> Option<&'static str> {
        let path = self.relative.as_deref().unwrap_or(&self.absolute);
        path.split('/').find_map(|part| {
            PROTECTED.into_iter().find(|protected| part.eq_ignore_ascii_case(protected))
        })
    }

    /// Whether the path is `folder`, or in it. `folder` is absolute and normalized.
    pub(crate) fn is_within(&self, folder: &str) -> bool {
        let rest = self.absolute.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether the path is a system stream that stores nothing, such as `/dev/null`.
    pub(crate) fn is_stream(&self) -> bool {
        const STREAMS: [&str; 7] = [
            "/dev/null",
            "/dev/zero",
            "/dev/stdin",
            "/dev/stdout",
            "/dev/stderr",
            "/dev/tty",
            "/dev/urandom",
        ];
        let fd = self.absolute.strip_prefix("/dev/fd/");
        STREAMS.contains(&self.absolute.as_str())
            || fd.is_some_and(|fd| fd.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// Joins `path` to `base`. An absolute `path` stays as it is.
pub(crate) fn join(base: &str, path: &str) -> String {
    if path.starts_with('/') || base.is_empty() {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    }
}

/// An absolute path without `.`, `..` and doubled slashes.
pub(crate) fn normalize(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Removes `.` and doubled slashes from a path, and `..` where a component precedes it. For
/// patterns.
pub(crate) fn normalize_pattern(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return Some(normalize(path));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}
