//! Decides which files of a project take effect.

use std::fmt;
use std::path::{Path, PathBuf};

use antiphon_core::AgentDefinition;

/// Decides which files of a project take effect. Files of the user's own folder always do.
pub struct FileCheck {
    decide: Box<Decide>,
    depends_on: Vec<PathBuf>,
}

type Decide = dyn Fn(&CheckedFile<'_>) -> Result<(), String> + Send + Sync;

/// A valid file of a project.
#[derive(Debug, Clone, Copy)]
pub struct CheckedFile<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Names its content.
    pub version: &'a str,
    /// What it defines.
    pub definition: &'a AgentDefinition,
}

impl FileCheck {
    /// Refuses the files for which `decide` returns a reason. The agents are read again when one of
    /// `depends_on` changes.
    pub fn new(
        decide: impl Fn(&CheckedFile<'_>) -> Result<(), String> + Send + Sync + 'static,
        depends_on: Vec<PathBuf>,
    ) -> Self {
        Self { decide: Box::new(decide), depends_on }
    }

    /// Lets every file take effect.
    pub fn none() -> Self {
        Self::new(|_| Ok(()), Vec::new())
    }

    pub(crate) fn check(&self, candidate: &CheckedFile<'_>) -> Result<(), String> {
        (self.decide)(candidate)
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
