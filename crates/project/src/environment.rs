//! The environment of a process: environment variables, current folder, and where warnings for the
//! user go. The binary captures it once; this library reads none of it from the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ProjectError;
use crate::request_drop::ProvidedRequestDrop;

/// What the process was started with.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Environment variables by name.
    pub variables: BTreeMap<OsString, OsString>,
    /// The current folder; absent when it was removed or cannot be read.
    pub current_dir: Option<PathBuf>,
    /// The home folder of the user's account, which `HOME` need not name.
    pub account_home: Option<PathBuf>,
    /// Receives warnings for the user.
    pub warnings: Warnings,
    /// Asks the user a question that needs an answer before anything is done.
    pub questions: Questions,
    /// Reads and answers request files of the project.
    pub request_drop: ProvidedRequestDrop,
    /// Which folders may be the root of a project.
    pub root_policy: RootPolicy,
    /// What happens with files of a project that are not trusted.
    pub trust_policy: TrustPolicy,
}

/// What happens with files of a project that are not trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrustPolicy {
    /// The user is asked.
    #[default]
    Ask,
    /// They are trusted as they are: the user named the flag that says so.
    TrustAll,
}

/// Which folders may be the root of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RootPolicy {
    /// Not `/`, the home folder, or a folder that holds the user's settings, state or keys.
    #[default]
    RefuseUnsafe,
    /// Any folder: the user named the flag that says so.
    AllowUnsafe,
}

impl Environment {
    /// The trimmed text of a variable; `None` when it is absent, blank or not UTF-8.
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The value of a variable as a path; `None` when it is absent or empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// The same, only when the path is absolute.
    pub fn absolute_path(&self, name: &str) -> Option<PathBuf> {
        self.path(name).filter(|path| path.is_absolute())
    }

    /// The user's home folder, when `HOME` is absolute.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute_path("HOME")
    }

    /// The current folder, or an error when there is none.
    pub fn current_dir(&self) -> Result<&Path, ProjectError> {
        self.current_dir
            .as_deref()
            .ok_or_else(|| ProjectError::InvalidInput("there is no current folder".to_owned()))
    }

    /// A path as seen from the current folder.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, ProjectError> {
        let refuse = |reason: String| {
            ProjectError::InvalidInput(format!("cannot use {}: {reason}", path.display()))
        };
        let joined = if path.is_absolute() || path.as_os_str().is_empty() {
            path.to_owned()
        } else {
            let current = self.current_dir().map_err(|error| refuse(error.to_string()))?;
            current.join(path)
        };
        std::path::absolute(joined).map_err(|error| refuse(error.to_string()))
    }

    /// Variables whose name and value are UTF-8.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&OsString, &OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        self.variables.iter().filter_map(text).collect()
    }

    /// Every variable, as a child process takes them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone()))
    }
}

/// Receives warnings for the user, one line each. The default writes them to the log.
#[derive(Clone)]
pub struct Warnings(Arc<dyn Fn(&str) + Send + Sync>);

impl Warnings {
    /// Passes every warning to `report`.
    pub fn new(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Passes a warning on.
    pub fn report(&self, warning: &str) {
        (self.0)(warning);
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Self::new(|warning| tracing::warn!("{warning}"))
    }
}

/// Asks the user yes or no. The default asks no user.
#[derive(Clone)]
pub struct Questions(Arc<Ask>);

/// Returns the answer, or `None` when there is no user to ask.
type Ask = dyn Fn(&str) -> Option<bool> + Send + Sync;

impl Questions {
    /// Asks through `ask`, which returns `None` when there is no user to ask.
    pub fn new(ask: impl Fn(&str) -> Option<bool> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        (self.0)(question)
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Questions")
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Warnings")
    }
}
