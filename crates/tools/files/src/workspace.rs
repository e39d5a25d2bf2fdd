//! The boundary of every tool that touches files.
//!
//! Only the user configures roots. The kernel resolves a path from a model beneath the descriptor of
//! a root. All operations use the resulting descriptor, so a later swap of the path has no effect.
//!
//! | a path that …                              | read-only     | workspace     | full          |
//! |--------------------------------------------|---------------|---------------|---------------|
//! | leads beneath a root                       | read          | read, write   | read, write   |
//! | leads beneath a readable root              | read          | read          | read, write   |
//! | is spelled as leading elsewhere            | as [`OutsidePaths`] says | as [`OutsidePaths`] says | read, write |
//! | leads elsewhere by a symlink               | refused       | refused       | read, write   |
//! | has a protected component (`.git`)         | read          | read          | read          |
//! | is in a folder of git with another name    | read          | read          | read          |
//! | is hidden, or in a hidden folder           | refused       | refused       | read, write   |
//! | has a secret component (`.antiphon`)       | refused       | refused       | refused       |
//! | is a device, FIFO, socket, in `/proc`      | refused       | refused       | refused       |
//!
//! Symlinks are followed as long as they lead to where the path itself could have led. Components
//! are compared whole, on the real path and as they are spelled; another spelling of the same
//! folder, on a disk that does not care about case, is recognized by its identity. A hard link has no
//! real path of its own: a second name of a protected file can be read like any file, and writing
//! to it leaves the protected one alone, because writing always makes a new file.
//!
//! Needs `openat2` (Linux 5.6) and `/proc`. Without them no workspace can be opened.

mod display_path;
mod git_dir;
mod hidden;
mod opened_path;
mod path_error;
mod protected;
mod replacement;
mod requested_path;
mod resolve;
mod root;
mod write_target;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(crate) use display_path::DisplayPath;
use hidden::Hidden;
pub use opened_path::{EntryKind, Identity, OpenedPath};
pub use path_error::{PathError, WorkspaceError};
pub use protected::{Protected, ReadAccess};
pub(crate) use replacement::{ReplaceError, ReplacedFile};
pub use requested_path::PATH_BYTES_MAX;
use resolve::Reach;
use root::Root;
pub(crate) use write_target::WriteTarget;

/// What an agent may do with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Read beneath the roots.
    ReadOnly,
    /// Read and write beneath the roots.
    #[default]
    Workspace,
    /// Read and write wherever the user can, apart from what is protected.
    Full,
}

/// What happens to paths that are spelled as leading out of the roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutsidePaths {
    /// They are refused.
    #[default]
    Refused,
    /// They are opened: every call has passed a gate that asks about such paths. A symlink in a
    /// root that leads out of it is refused nevertheless, because the gate does not see it.
    AskedFor,
}

/// Configuration of a workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceConfig {
    /// The user's folders. The first is the working folder: relative paths begin there.
    pub roots: Vec<PathBuf>,
    /// Folders that may be read but not written.
    pub readable: Vec<PathBuf>,
    /// Names that are protected wherever they are found beneath a root.
    pub protected: Vec<Protected>,
    /// Files and folders that are neither read nor written, except in [`Mode::Full`]. Absolute
    /// paths; they need not exist.
    pub hidden: Vec<PathBuf>,
    /// What happens to paths that lead out of the roots.
    pub outside: OutsidePaths,
    /// Permitted access.
    pub mode: Mode,
}

impl WorkspaceConfig {
    /// One root, with the names that are always protected.
    pub fn of(root: impl Into<PathBuf>, mode: Mode) -> Self {
        Self {
            roots: vec![root.into()],
            readable: Vec::new(),
            protected: Protected::defaults(),
            hidden: Vec::new(),
            outside: OutsidePaths::Refused,
            mode,
        }
    }
}

/// The folders an agent works in, and what it may do there.
#[derive(Debug)]
pub struct Workspace {
    /// Writable roots first, then read-only roots.
    roots: Vec<Root>,
    writable: usize,
    protected: Vec<Protected>,
    hidden: Hidden,
    outside: OutsidePaths,
    mode: Mode,
    /// Locked from the last check of a file to its replacement, so that of two tasks that change a
    /// file, the second detects the change of the first.
    replacing: Mutex<()>,
}

/// Requested access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read the file or folder.
    Read,
    /// Create or replace the file.
    Write,
}

impl Workspace {
    /// Opens the roots. The error says what is wrong with them or the system.
    pub fn open(config: WorkspaceConfig) -> Result<Self, WorkspaceError> {
        if config.roots.is_empty() {
            return Err(WorkspaceError::NoRoot);
        }
        for protected in &config.protected {
            protected.check()?;
        }
        let writable = config.roots.len();
        let roots = config.roots.iter().chain(&config.readable);
        Ok(Self {
            roots: roots.map(|path| Root::open(path)).collect::<Result<_, _>>()?,
            writable,
            protected: config.protected,
            hidden: Hidden::new(config.hidden),
            outside: config.outside,
            mode: config.mode,
            replacing: Mutex::new(()),
        })
    }

    /// What an agent may do.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The folder that relative paths start from.
    pub fn working_folder(&self) -> &Path {
        self.roots[0].path()
    }

    /// Opens a file or a folder for reading, by descriptor.
    pub fn open_path(&self, path: &str) -> Result<OpenedPath, PathError> {
        let requested = requested_path::parse(path)?;
        let reach = self.reach(&requested);
        let found =
            self.find(&requested, Access::Read, reach).map_err(|error| self.with_hint(error))?;
        self.check_access(&found, Access::Read, reach)?;
        Ok(found)
    }

    /// The hidden paths beneath `folder`, a real path, relative to it.
    pub(crate) fn hidden_beneath(&self, folder: &Path) -> Vec<PathBuf> {
        match self.mode {
            Mode::ReadOnly | Mode::Workspace => self.hidden.beneath(folder),
            Mode::Full => Vec::new(),
        }
    }

    /// Resolves a path for writing. Creates nothing yet.
    pub(crate) fn place(&self, path: &str) -> Result<WriteTarget<'_>, PathError> {
        write_target::find(self, path)
    }

    /// The path for display: relative to the working folder if beneath it.
    pub fn name_of<'a>(&self, real: &'a Path) -> &'a Path {
        let beneath = self.roots[0].real().ok().and_then(|root| real.strip_prefix(root).ok());
        match beneath {
            Some(beneath) if beneath.as_os_str().is_empty() => Path::new("."),
            Some(beneath) => beneath,
            None => real,
        }
    }

    fn with_hint(&self, error: PathError) -> PathError {
        if let PathError::NotFound { path, near: None } = error {
            PathError::NotFound { near: self.similar_name(&path), path }
        } else {
            error
        }
    }

    /// The roots that permit `access`.
    fn roots(&self, access: Access) -> &[Root] {
        match access {
            Access::Read => &self.roots,
            Access::Write => &self.roots[..self.writable],
        }
    }

    /// An error that names the accepted roots.
    fn outside(&self, path: &Path, access: Access) -> PathError {
        let roots = self.roots(access).iter().map(|root| root.path().to_owned()).collect();
        PathError::Outside { path: path.to_owned(), access, roots }
    }
}
