//! Decides which files of a project take effect.

use std::fmt;
use std::path::{Path, PathBuf};

use antiphon_core::AgentDefinition;

/// Decides which files of a project take effect. Files of the user's own folder always do.
pub struct FileCheck {
    begin: Box<dyn Fn() -> Box<Decide> + Send + Sync>,
    depends_on: Vec<PathBuf>,
}

/// Decides about the files of one reading. The error says why a file has no effect.
pub(crate) type Decide = dyn Fn(&CheckedFile<'_>) -> Result<(), String>;

/// A valid file of a project.
#[derive(Debug, Clone, Copy)]
pub struct CheckedFile<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Names its content.
    pub version: &'a str,
    /// What it defines.
    pub definition: &'a AgentDefinition,
    /// Whether it was written for another program.
    pub is_foreign: bool,
}

impl FileCheck {
    /// Refuses the files for which a decision returns a reason. `begin` makes it once for each reading of all files, so
    /// that what it depends on is read once. The agents are read again when one of `depends_on` changes.
    pub fn new<D>(begin: impl Fn() -> D + Send + Sync + 'static, depends_on: Vec<PathBuf>) -> Self
    where
        D: Fn(&CheckedFile<'_>) -> Result<(), String> + 'static,
    {
        Self { begin: Box::new(move || Box::new(begin())), depends_on }
    }

    /// Lets every file take effect.
    pub fn none() -> Self {
        Self::new(|| |_: &CheckedFile<'_>| Ok(()), Vec::new())
    }

    /// Begins a reading of all files.
    pub(crate) fn begin(&self) -> Box<Decide> {
        (self.begin)()
    }

    pub(crate) fn depends_on(&self) -> &[PathBuf] {
        &self.depends_on
    }
}

impl fmt::Debug for FileCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCheck").field("depends_on", &self.depends_on).finish_non_exhaustive()
    }
}
