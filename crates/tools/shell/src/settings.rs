//! Configuration of the shell.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use antiphon_sandbox::{Policy, SandboxError, WorkerCommand};

use crate::{Environment, HostNetwork, WithoutSandbox};

/// Configuration of the shell.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// The command that starts a worker.
    pub worker: WorkerCommand,
    /// What commands may access. Each task gets a folder of its own in `tmp`, which is created if
    /// it does not exist and hidden from commands.
    pub policy: Policy,
    /// Folder for output that is too long to be shown: one folder for each task, one file for each
    /// command, named by the id that the model gets, where `read_result` finds it. Created if it
    /// does not exist, and hidden from commands.
    pub results: PathBuf,
    /// The environment variables of commands.
    pub environment: Environment,
    /// Whether a script changes a repository and does nothing else: it runs in a sandbox in which
    /// git may do that. A gate has asked about it.
    pub changes_repository: fn(&str) -> bool,
    /// Whether a call can ask to run without the sandbox.
    pub without_sandbox: WithoutSandbox,
    /// The hosts that commands may reach although the policy gives them no network. `None`: none.
    pub network: Option<HostNetwork>,
}

/// Why a shell cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The sandbox policy is invalid. Change it.
    #[error(transparent)]
    Policy(#[from] SandboxError),
    /// The policy has no root folder.
    #[error("there is no folder to work in: name one")]
    NoRoot,
    /// A folder of the shell cannot be used. Fix its permissions, or choose another one.
    #[error("the folder `{path}` cannot be used: {reason}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
}

impl ShellSettings {
    /// Creates the folders, resolves the paths, and hides the shell's own folders from commands.
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
