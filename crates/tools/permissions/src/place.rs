//! Paths as they are written, without a look at the disk.
//!
//! A rule is compared with whole components of a path from which `.`, `..` and doubled slashes
//! are gone. Links are the tools' matter: they resolve beneath the workspace.

/// Folders that no tool writes to, whatever the rules say: whoever writes there decides what
/// runs next, or what is allowed.
pub const PROTECTED: [&str; 3] = [".git", ".antiphon", ".ideai"];

/// A path in its shortest form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// From the root of the file system.
    pub(crate) absolute: String,
    /// From the workspace, if it is inside; the workspace itself is `.`.
    pub(crate) relative: Option<String>,
}

impl Place {
    /// What `path` is when it is read in `base`; `root` is absolute and in its shortest form.
    pub(crate) fn of(root: &str, base: &str, path: &str) -> Self {
        let absolute = shortest(&join(root, &join(base, path)));
        let relative = if absolute == root {
            Some(".".to_owned())
        } else if root == "/" {
            absolute.strip_prefix('/').map(str::to_owned)
        } else {
            absolute.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned)
        };
        Self { absolute, relative }
    }

    /// The shortest way to say it.
    pub(crate) fn shown(&self) -> &str {
        self.relative.as_deref().unwrap_or(&self.absolute)
    }

    /// The protected folder that it is, or is in. Case does not count: on some file systems it
    /// makes no difference.
    pub(crate) fn protected(&self) -> Option<&'static str> {
        let path = self.relative.as_deref().unwrap_or(&self.absolute);
        path.split('/').find_map(|part| {
            PROTECTED.into_iter().find(|protected| part.eq_ignore_ascii_case(protected))
        })
    }

    /// Whether it is a file of the system that takes or gives bytes and keeps nothing.
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

/// `path` as seen from `base`.
pub(crate) fn join(base: &str, path: &str) -> String {
    if path.starts_with('/') || base.is_empty() {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    }
}

/// An absolute path without `.`, `..` and doubled slashes.
pub(crate) fn shortest(path: &str) -> String {
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

/// A relative path, or an absolute one, without `.` and doubled slashes, and without `..` where
/// something is before it. Used for patterns.
pub(crate) fn tidy(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return Some(shortest(path));
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
