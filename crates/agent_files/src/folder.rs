//! A folder of agent files, read by descriptor.
//!
//! Only regular files are read, and links only within the folder: files of a clone cannot lead the reader
//! elsewhere, block it or fill its memory. Files above the limits are skipped and reported.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use crate::foreign::ForeignFormat;

/// Most agents in one folder. Of more, the first by name are used.
pub const AGENTS_MAX: usize = 10_000;

/// Most entries of a folder that are read.
pub const ENTRIES_MAX: usize = 20_000;

/// Attempts to open a file while folders are renamed.
const TRIES_MAX: u32 = 32;

/// Extension of agent files.
const EXTENSION: &[u8] = b".md";

/// A folder of agent files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path; it may not exist yet.
    pub path: PathBuf,
    /// Whether it belongs to the project or the user.
    pub origin: FolderOwner,
    /// The format of its files when another program uses them.
    pub foreign: Option<ForeignFormat>,
}

/// The owner of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FolderOwner {
    /// The project. It may have come with a clone, so it must not be a link.
    Project,
    /// The user.
    User,
}

impl FolderOwner {
    /// `project` or `user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Names of the agent files, and a problem of the folder.
pub(crate) struct Names {
    pub(crate) names: Vec<PathBuf>,
    pub(crate) fault: Option<String>,
}

impl Folder {
    /// A project's folder.
    pub fn project(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), origin: FolderOwner::Project, foreign: None }
    }

    /// A folder of the user's own.
    pub fn user(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), origin: FolderOwner::User, foreign: None }
    }

    /// The same folder, whose files are in the format of another program.
    #[must_use]
    pub fn in_format(self, format: ForeignFormat) -> Self {
        Self { foreign: Some(format), ..self }
    }

    /// Opens it; `None` when it does not exist.
    pub(crate) fn open(&self) -> Result<Option<OpenFolder>, String> {
        if self.is_below_link() {
            return Err("the folder above it is a link: it may lead out of the project".to_owned());
        }
        let link = match self.origin {
            FolderOwner::Project => OFlags::NOFOLLOW,
            FolderOwner::User => OFlags::empty(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | link;
        match openat(CWD, &self.path, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(OpenFolder { descriptor })),
            Err(Errno::NOENT) => Ok(None),
            // With both flags, a link counts as no folder.
            Err(Errno::NOTDIR | Errno::LOOP) => Err("it is not a folder".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether a folder of another program in a project is reached through a link.
    fn is_below_link(&self) -> bool {
        let parent = match self.origin {
            FolderOwner::Project => self.foreign.as_ref().and(self.path.parent()),
            FolderOwner::User => None,
        };
        parent.is_some_and(Path::is_symlink)
    }
}

/// An open folder.
pub(crate) struct OpenFolder {
    descriptor: OwnedFd,
}

impl OpenFolder {
    /// Names of its agent files, in order. Hidden files belong to editors.
    pub(crate) fn names(&self) -> Result<Names, String> {
        let text = |error: Errno| error.to_string();
        let (mut names, mut fault) = (Vec::new(), None);
        for (index, entry) in Dir::read_from(&self.descriptor).map_err(text)?.enumerate() {
            let entry = entry.map_err(text)?;
            if index >= ENTRIES_MAX {
                fault = Some(format!("it has more than {ENTRIES_MAX} entries: not all are read"));
                break;
            }
            let name = entry.file_name().to_bytes();
            if name.ends_with(EXTENSION) && !name.starts_with(b".") {
                names.push(Path::new(std::ffi::OsStr::from_bytes(name)).to_owned());
            }
        }
        names.sort();
        if names.len() > AGENTS_MAX {
            names.truncate(AGENTS_MAX);
            fault = Some(format!("it has more than {AGENTS_MAX} agents: only the first are used"));
        }
        Ok(Names { names, fault })
    }

    /// Reads a regular file below the folder: at most one byte more than `bytes_max`.
    pub(crate) fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
        let descriptor = self.open_beneath(path).map_err(|error| match error {
            Errno::XDEV => "it is a link that leads out of its folder".to_owned(),
            Errno::LOOP => "it is a link that leads nowhere".to_owned(),
            other => other.to_string(),
        })?;
        let about = fstat(&descriptor).map_err(|error| error.to_string())?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err("it is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        File::from(descriptor)
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn open_beneath(&self, path: &Path) -> Result<OwnedFd, Errno> {
        // A pipe without a writer must not block the reader.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(&self.descriptor, path, flags, Mode::empty(), resolve);
        for _ in 1..TRIES_MAX {
            match open() {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        open()
    }
}
