//! Hidden paths: what the sandbox hides from commands, tools do not touch either.

use std::path::{Path, PathBuf};

/// Files and folders that tools do not touch.
#[derive(Debug)]
pub(super) struct Hidden(Vec<PathBuf>);

impl Hidden {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }

    /// Whether `real`, a path without symlinks, is hidden or in a hidden folder.
    pub(super) fn covers(&self, real: &Path) -> bool {
        self.real().any(|hidden| real.starts_with(hidden))
    }

    /// The hidden paths beneath `folder`, relative to it.
    pub(super) fn beneath(&self, folder: &Path) -> Vec<PathBuf> {
        let relative = |hidden: PathBuf| Some(hidden.strip_prefix(folder).ok()?.to_owned());
        self.real().filter_map(relative).collect()
    }

    /// As configured, and where a path leads now: it may be a symlink, and may appear later.
    fn real(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.0.iter().flat_map(|path| {
            let real = path.canonicalize().ok().filter(|real| real != path);
            [Some(path.clone()), real].into_iter().flatten()
        })
    }
}
