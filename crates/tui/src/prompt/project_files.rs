//! The files of the project, for completion. They are read beside the loop of the program, which goes on meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use tokio::task::JoinSet;

/// Files of a project that are looked at.
const FILES_MAX: usize = 50_000;

/// Entries that are looked at to find them.
const ENTRIES_MAX: usize = 500_000;

/// Files that were read longer ago are read again.
const FRESH: Duration = Duration::from_secs(10);

/// The files that git does not ignore, as paths from the root of the project.
pub(crate) struct ProjectFiles {
    root: PathBuf,
    files: Vec<String>,
    read_at: Option<Instant>,
    /// The walk that is under way.
    walk: JoinSet<Vec<String>>,
    /// The program ends: so does the walk.
    stops: Arc<AtomicBool>,
}

impl ProjectFiles {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, files: Vec::new(), read_at: None, walk: JoinSet::new(), stops: Arc::default() }
    }

    /// Begins to read the files, unless they were read just now or are being read.
    pub(crate) fn refresh(&mut self) {
        if self.walk.is_empty() && self.read_at.is_none_or(|at| at.elapsed() >= FRESH) {
            let (root, stops) = (self.root.clone(), Arc::clone(&self.stops));
            self.walk.spawn_blocking(move || read(&root, &stops));
        }
    }

    /// Returns when files were read. Never while none are being read. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        match self.walk.join_next().await {
            Some(files) => {
                // A walk that panicked found nothing.
                self.files = files.unwrap_or_default();
                self.read_at = Some(Instant::now());
            }
            None => std::future::pending().await,
        }
    }

    /// Whether files are being read.
    pub(crate) fn are_being_read(&self) -> bool {
        !self.walk.is_empty()
    }

    /// The files that were read last.
    pub(crate) fn known(&self) -> &[String] {
        &self.files
    }
}

impl Drop for ProjectFiles {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
    }
}

fn read(root: &Path, stops: &AtomicBool) -> Vec<String> {
    let walk = WalkBuilder::new(root).follow_links(false).build();
    let files = walk
        .take(ENTRIES_MAX)
        .take_while(|_| !stops.load(Ordering::Relaxed))
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files.filter_map(|entry| {
        let path = entry.path().strip_prefix(root).ok()?;
        Some(path.to_str()?.to_owned())
    });
    paths.take(FILES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_that_git_ignores_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [(".gitignore", "*.log\n"), ("a.rs", ""), ("b.log", "")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let mut files = ProjectFiles::new(folder.path().to_owned());
        assert!(files.known().is_empty());
        files.refresh();
        files.changed().await;
        assert_eq!(files.known(), ["a.rs"]);
        files.refresh();
        assert!(files.walk.is_empty(), "they were read just now");
    }
}
