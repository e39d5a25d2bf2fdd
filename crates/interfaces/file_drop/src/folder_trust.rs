//! Which folders of requests the user trusts. A folder may have come with a clone of the project: its requests
//! are answered with a refusal.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// Told of a folder that this process created: its absolute path, and the open folder.
type OnCreated = dyn Fn(&Path, BorrowedFd<'_>) + Send + Sync;

/// Which folders of requests the user trusts, by absolute path. The default trusts every folder.
#[derive(Clone)]
pub struct FolderTrust {
    is_trusted: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
    created: Arc<OnCreated>,
}

impl FolderTrust {
    /// Asks `is_trusted` before each request is executed, and calls `created` with each folder that this
    /// process created, and gives it the open folder. Both may block on files.
    pub fn new(
        is_trusted: impl Fn(&Path) -> bool + Send + Sync + 'static,
        created: impl Fn(&Path, BorrowedFd<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self { is_trusted: Arc::new(is_trusted), created: Arc::new(created) }
    }

    pub(crate) fn is_trusted(&self, folder: &Path) -> bool {
        (self.is_trusted)(folder)
    }

    pub(crate) fn created(&self, path: &Path, folder: BorrowedFd<'_>) {
        (self.created)(path, folder);
    }
}

impl Default for FolderTrust {
    fn default() -> Self {
        Self::new(|_| true, |_, _| {})
    }
}

impl fmt::Debug for FolderTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FolderTrust")
    }
}
