//! Files below a folder, for commands and skills: bounded in number, depth and size.
//!
//! In a project nothing is read through a link: it came with a clone and could lead anywhere.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use antiphon_agent_files::{FILE_BYTES_MAX, FolderOwner, version_of};

/// Most entries of folders that are read.
const ENTRIES_MAX: usize = 5_000;

/// Deepest folder below the first one.
const DEPTH_MAX: usize = 4;

/// A file that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    /// Its path below the folder.
    pub(crate) relative: PathBuf,
    pub(crate) path: PathBuf,
}

/// A folder to look in.
#[derive(Debug, Clone)]
pub(crate) struct LookedFolder {
    pub(crate) owner: FolderOwner,
    /// The root of the project, or the folder itself if it is the user's.
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    /// The program it belongs to.
    pub(crate) program: &'static str,
}

impl LookedFolder {
    /// The files below it whose names `wanted` accepts, in order. A folder that cannot be read has none.
    pub(crate) fn files(&self, wanted: impl Fn(&Path) -> bool) -> Vec<FoundFile> {
        if !self.is_reachable() {
            return Vec::new();
        }
        let (mut found, mut open, mut left) =
            (Vec::new(), vec![(self.path.clone(), 0)], ENTRIES_MAX);
        while let Some((folder, depth)) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Some(less) = left.checked_sub(1) else { break };
                left = less;
                let path = entry.path();
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                let Ok(about) = self.about(&path) else { continue };
                if is_hidden {
                    continue;
                }
                if about.is_dir() && depth < DEPTH_MAX {
                    open.push((path, depth + 1));
                } else if about.is_file() && wanted(&path) {
                    let relative = path.strip_prefix(&self.path).unwrap_or(&path).to_owned();
                    found.push(FoundFile { relative, path });
                }
            }
        }
        found.sort_by(|one, other| one.relative.cmp(&other.relative));
        found
    }

    /// The bytes of a file, and what names them.
    pub(crate) fn read(&self, path: &Path) -> io::Result<(Vec<u8>, String)> {
        if !self.about(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        let limit = FILE_BYTES_MAX as u64 + 1;
        fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        let version = version_of(&bytes);
        Ok((bytes, version))
    }

    /// The length of a file and what names its content; an error when it has more than `bytes_max`.
    pub(crate) fn version(&self, path: &Path, bytes_max: usize) -> io::Result<(usize, String)> {
        if !self.about(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > bytes_max {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok((bytes.len(), version_of(&bytes)))
    }

    /// No link leads to it, if it is a project's.
    fn is_reachable(&self) -> bool {
        let mut folder = self.root.clone();
        let below = self.path.strip_prefix(&self.root).unwrap_or(Path::new(""));
        below.components().all(|part| {
            folder.push(part);
            self.about(&folder).is_ok_and(|about| about.is_dir())
        })
    }

    fn about(&self, path: &Path) -> io::Result<fs::Metadata> {
        match self.owner {
            FolderOwner::Project => fs::symlink_metadata(path),
            FolderOwner::User => fs::metadata(path),
        }
    }
}

/// Whether a file is markdown.
pub(crate) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}
