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
    /// Give one.
    #[error("the path is empty: give one, relative to the working folder or absolute")]
    Empty,
    /// Give one without.
    #[error("a path cannot contain a NUL character: give it without")]
    Nul,
    /// Give a shorter one.
    #[error(
        "the path has a part or a whole too long for the system ({PATH_BYTES_MAX} bytes in all): give a shorter one"
    )]
    TooLong,
    /// Write it out.
    #[error("`~` is not expanded: give the path relative to the working folder, or absolute")]
    Tilde,
    /// Choose another.
    #[error("{} is outside of what may be {access}: {}", DisplayPath(path), Roots(roots))]
    Outside {
        /// Which path.
        path: PathBuf,
        /// What for.
        access: Access,
        /// Where it would be accepted.
        roots: Vec<PathBuf>,
    },
    /// Leave it alone.
    #[error(
        "{} is protected: nothing named `{}`, or in it, may be {access} by tools",
        DisplayPath(path),
        name.display()
    )]
    Protected {
        /// Which path.
        path: PathBuf,
        /// What in it is protected.
        name: OsString,
        /// From what.
        access: Access,
    },
    /// Ask for another mode.
    #[error("files may only be read here (read-only mode): say what you would change instead")]
    ReadOnly,
    /// Look for it.
    #[error("{} does not exist{}", DisplayPath(path), Hint(near.as_deref()))]
    NotFound {
        /// Which path.
        path: PathBuf,
        /// Something with a similar name in the same folder.
        near: Option<PathBuf>,
    },
    /// Give one of a file.
    #[error("{} is {what}, not a file: {}", DisplayPath(path), advice(what))]
    NotAFile {
        /// Which path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Give one of a folder.
    #[error("{} is a file: nothing can be beneath it, give another path", DisplayPath(path))]
    NotAFolder {
        /// Which path.
        path: PathBuf,
    },
    /// Leave it, or have the user unlock it: replacing it would need no permission of its own.
    #[error(
        "{} has no write permission: somebody wants it left as it is, ask them",
        DisplayPath(path)
    )]
    Locked {
        /// Which path.
        path: PathBuf,
    },
    /// Write to where it points, or elsewhere.
    #[error("{} is a symlink to nothing: give the path of a file", DisplayPath(path))]
    Dangling {
        /// Which path.
        path: PathBuf,
    },
    /// Give the path it should lead to.
    #[error(
        "{} leads through a symlink loop or a link of the kernel's: give a plain path",
        DisplayPath(path)
    )]
    Loop {
        /// Which path.
        path: PathBuf,
    },
    /// Choose another, or have the user change its permissions.
    #[error(
        "the system does not permit this on {}: choose another path, or tell the user",
        DisplayPath(path)
    )]
    Denied {
        /// Which path.
        path: PathBuf,
    },
    /// Tell the user.
    #[error(
        "this system cannot keep file tools within a folder ({what} is missing): tell the user, nothing was done"
    )]
    Unsupported {
        /// What is missing.
        what: &'static str,
    },
    /// Look at it.
    #[error("{} cannot be opened: {reason}", DisplayPath(path))]
    Io {
        /// Which path.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Name one.
    #[error("a workspace needs at least one root folder")]
    NoRoot,
    /// Choose another.
    #[error("{} cannot be a root: {reason}", path.display())]
    Root {
        /// Which folder.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// Choose another.
    #[error("`{}` cannot be protected: a name without `/` is needed", name.display())]
    Name {
        /// Which name.
        name: OsString,
    },
    /// Use another system: file tools are refused on this one.
    #[error("file tools need {what}, which this system does not have")]
    Unsupported {
        /// What is missing.
        what: &'static str,
    },
}

impl PathError {
    /// What a refusal of the system means.
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
