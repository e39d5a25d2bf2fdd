//! Why a path is not opened. The model reads these: each says what to do instead.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::requested_path::PATH_BYTES_MAX;
use super::{Access, DisplayPath};

/// Why a path is not opened.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The path is empty.
    #[error("the path is empty: give one, relative to the working folder or absolute")]
    Empty,
    /// The path contains a NUL character.
    #[error("a path cannot contain a NUL character: give it without")]
    Nul,
    /// The path or a part of it is too long.
    #[error(
        "the path has a part or a whole too long for the system ({PATH_BYTES_MAX} bytes in all): give a shorter one"
    )]
    TooLong,
    /// The path starts with `~`, which is not expanded.
    #[error("`~` is not expanded: give the path relative to the working folder, or absolute")]
    Tilde,
    /// The path is outside of the roots that permit the access.
    #[error("{} is outside of what may be {access}: {}", DisplayPath(path), Roots(roots))]
    Outside {
        /// The requested path.
        path: PathBuf,
        /// Requested access.
        access: Access,
        /// Roots that permit the access.
        roots: Vec<PathBuf>,
    },
    /// The path is protected.
    #[error(
        "{} is protected: nothing named `{}`, or in it, may be {access} by tools",
        DisplayPath(path),
        name.display()
    )]
    Protected {
        /// The requested path.
        path: PathBuf,
        /// The protected component.
        name: OsString,
        /// Refused access.
        access: Access,
    },
    /// The path is hidden.
    #[error(
        "{} is hidden: keys, passwords and Antiphon's own files are kept from agents. Do without it, \
         or ask the user for what you need from it",
        DisplayPath(path)
    )]
    Hidden {
        /// The requested path.
        path: PathBuf,
    },
    /// The path is in a folder of git that is not called `.git`.
    #[error(
        "{} is in the git repository {}: tools do not write there, use git",
        DisplayPath(path),
        DisplayPath(folder)
    )]
    InRepository {
        /// The requested path.
        path: PathBuf,
        /// The folder of git.
        folder: PathBuf,
    },
    /// The workspace is read-only.
    #[error("files may only be read here (read-only mode): say what you would change instead")]
    ReadOnly,
    /// The path does not exist.
    #[error("{} does not exist{}", DisplayPath(path), Hint(near.as_deref()))]
    NotFound {
        /// The requested path.
        path: PathBuf,
        /// A path with a similar name in the same folder.
        near: Option<PathBuf>,
    },
    /// The path is not a regular file.
    #[error("{} is {what}, not a file: {}", DisplayPath(path), advice(what))]
    NotAFile {
        /// The requested path.
        path: PathBuf,
        /// Actual type, for display.
        what: &'static str,
    },
    /// A parent of the path is a file.
    #[error("{} is a file: nothing can be beneath it, give another path", DisplayPath(path))]
    NotAFolder {
        /// The requested path.
        path: PathBuf,
    },
    /// The file has no write permission. Replacing it would work, but would ignore that.
    #[error("{} has no write permission: leave it unchanged, or ask the user", DisplayPath(path))]
    Locked {
        /// The requested path.
        path: PathBuf,
    },
    /// The path is a symlink without a target.
    #[error("{} is a symlink to nothing: give the path of a file", DisplayPath(path))]
    Dangling {
        /// The requested path.
        path: PathBuf,
    },
    /// The path contains a symlink loop or a kernel link.
    #[error(
        "{} leads through a symlink loop or a link of the kernel's: give a plain path",
        DisplayPath(path)
    )]
    Loop {
        /// The requested path.
        path: PathBuf,
    },
    /// The operating system denies access.
    #[error(
        "the system does not permit this on {}: choose another path, or tell the user",
        DisplayPath(path)
    )]
    Denied {
        /// The requested path.
        path: PathBuf,
    },
    /// The operating system lacks a required feature.
    #[error(
        "this system cannot keep file tools within a folder ({what} is missing): tell the user, nothing was done"
    )]
    Unsupported {
        /// The missing feature.
        what: &'static str,
    },
    /// Another error of the operating system.
    #[error("{} cannot be opened: {reason}", DisplayPath(path))]
    Io {
        /// The requested path.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no root.
    #[error("a workspace needs at least one root folder")]
    NoRoot,
    /// A root cannot be opened.
    #[error("{} cannot be a root: {reason}", path.display())]
    Root {
        /// Path of the root.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// A protected name contains `/` or is empty.
    #[error("`{}` cannot be protected: a name without `/` is needed", name.display())]
    Name {
        /// The invalid name.
        name: OsString,
    },
    /// The operating system lacks a required feature: file tools do not work on it.
    #[error("file tools need {what}, which this system does not have")]
    Unsupported {
        /// The missing feature.
        what: &'static str,
    },
}

impl PathError {
    /// Converts an error of the operating system.
    pub(super) fn from_errno(path: &Path, error: Errno) -> Self {
        let path = path.to_owned();
        match error {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound { path, near: None },
            Errno::LOOP => Self::Loop { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied { path },
            Errno::NAMETOOLONG => Self::TooLong,
            Errno::NOSYS => Self::Unsupported { what: "openat2" },
            error => Self::Io { path, reason: error.into() },
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "written",
        })
    }
}

struct Roots<'a>(&'a [PathBuf]);

impl fmt::Display for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use a path beneath ")?;
        for (i, root) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { " or " }, DisplayPath(root))?;
        }
        Ok(())
    }
}

struct Hint<'a>(Option<&'a Path>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(near) => write!(f, ": did you mean {}?", DisplayPath(near)),
            None => f.write_str(": list the folder or search for it by name"),
        }
    }
}

fn advice(what: &str) -> &'static str {
    if what == "a folder" { "give the path of a file in it" } else { "it is left alone" }
}
