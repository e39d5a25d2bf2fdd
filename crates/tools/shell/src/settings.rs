//! What the shell is given by whoever wires the binary.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use antiphon_sandbox::{Policy, SandboxError, WorkerCommand};

use crate::Environment;

/// What the shell is given.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How a worker is started.
    pub worker: WorkerCommand,
    /// What commands may touch. Its `tmp` is a folder of ours in which each task gets one of its
    /// own; it is made if it is not there, and hidden from commands.
    pub policy: Policy,
    /// Where the output of a command is kept whole if it is too long to be shown: in a folder for
    /// each task, under the id that the model is told, as `read_result` finds it. It is made if it
    /// is not there, and hidden from commands.
    pub results: PathBuf,
    /// What commands find in their environment.
    pub environment: Environment,
}

/// Why there can be no shell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Change the policy.
    #[error(transparent)]
    Policy(#[from] SandboxError),
    /// Nobody said what to work on.
    #[error("there is no folder to work in: name one")]
    NoRoot,
    /// Make it usable, or choose another one.
    #[error("the folder `{path}` cannot be used: {reason}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Settings {
    /// The same with its folders made, its paths resolved, and our own places hidden.
    pub(crate) fn prepared(mut self) -> Result<Self, SettingsError> {
        self.policy.tmp = private(&self.policy.tmp)?;
        self.results = private(&self.results)?;
        self.policy = self.policy.resolved()?;
        if self.policy.roots.is_empty() {
            return Err(SettingsError::NoRoot);
        }
        self.policy.hidden.extend([self.policy.tmp.clone(), self.results.clone()]);
        Ok(self)
    }
}

fn private(path: &Path) -> Result<PathBuf, SettingsError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| path.canonicalize())
        .map_err(|error| SettingsError::Folder { path: path.to_owned(), reason: error.to_string() })
}
