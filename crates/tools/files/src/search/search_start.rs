//! The file or folder a search starts at.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::folder::Folder;
use super::{NEVER_ENTERED, RelPath};
use crate::workspace::{EntryKind, Workspace};

/// A file or folder to search.
#[derive(Debug)]
pub(crate) struct SearchStart {
    pub(crate) what: StartKind,
    /// Path for display: relative to the working folder if beneath it; empty for that folder.
    pub(crate) name: RelPath,
    /// Real path.
    pub(crate) real: PathBuf,
    /// The outermost folder whose ignore rules apply outside of a repository.
    pub(crate) root: PathBuf,
    /// Hidden paths beneath it, relative to it.
    pub(crate) secret: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum StartKind {
    File(File),
    Folder(Folder),
}

impl SearchStart {
    /// Resolves the `path` of a call. The error is a text for the model.
    pub(crate) fn find(workspace: &Workspace, path: Option<&str>) -> Result<Self, String> {
        let found = workspace.open_path(path.unwrap_or(".")).map_err(|error| error.to_string())?;
        let name = workspace.name_of(found.path());
        let never = |part: &Path| NEVER_ENTERED.iter().find(|never| part == Path::new(never));
        if let Some(never) = name.iter().find_map(|part| never(Path::new(part))) {
            return Err(format!("`{never}` is never searched: use `read` for a file in it"));
        }
        let opened = found.open();
        let opened = opened
            .map_err(|error| format!("`{}` cannot be opened: {}", name.display(), error.kind()))?;
        let root = workspace.working_folder();
        Ok(Self {
            what: match found.kind() {
                EntryKind::File => StartKind::File(opened),
                EntryKind::Folder => StartKind::Folder(Folder::from(opened)),
            },
            name: RelPath::from(if name == Path::new(".") { Path::new("") } else { name }),
            real: found.path().to_owned(),
            secret: workspace.hidden_beneath(found.path()),
            root: if found.path().starts_with(root) { root } else { found.path() }.to_owned(),
        })
    }

    /// How a path from here is shown.
    pub(crate) fn path_of(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() { self.name.0.clone() } else { self.name.join(path).0 }
    }
}

impl From<File> for Folder {
    fn from(file: File) -> Self {
        Self::of(file.into())
    }
}
