//! Configuration of the runner. Invalid settings are refused here.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use antiphon_sandbox::{Policy, SandboxError, SandboxMode, WorkerCommand};
use serde_json::Value;

use crate::kept_files;
use crate::limits::{MEMORY_BYTES_MIN, WorkerLimits};

/// Longest [`SandboxRunnerSettings::worker_settings`], in bytes of JSON.
pub const WORKER_SETTINGS_BYTES_MAX: usize = 1024 * 1024;

/// Default of `workers_max`. Further tasks wait.
pub const WORKERS_DEFAULT: usize = 32;

/// Configuration of the runner.
#[derive(Debug, Clone)]
pub struct SandboxRunnerSettings {
    /// The command that starts a worker: a program that calls [`worker_main`](crate::worker_main)
    /// first.
    pub worker: WorkerCommand,
    /// What tools may access. Each worker gets a folder of its own in `tmp`, which is created if it
    /// does not exist and hidden from tools.
    pub policy: Policy,
    /// Resource limits. The config of an executor may lower them.
    pub limits: WorkerLimits,
    /// All environment variables of workers. They must not contain keys.
    pub environment: Vec<(OsString, OsString)>,
    /// Passed to the worker unchanged. Every process there can read it.
    pub worker_settings: Value,
    /// A folder below `/tmp` whose small files go to the next worker of the same task. `None`: none do.
    pub kept: Option<PathBuf>,
    /// Most workers at a time.
    pub workers_max: usize,
}

/// Why a runner cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The sandbox policy is invalid. Change it.
    #[error(transparent)]
    Policy(#[from] SandboxError),
    /// The policy has no restrictions.
    #[error("the runner `sandbox` needs a sandbox: choose the mode `workspace` or `read-only`")]
    NoSandbox,
    /// A limit is too low.
    #[error("the limit `{name}` is {found}: a worker needs {least} at least")]
    TooLittle {
        /// Name of the limit.
        name: &'static str,
        /// Its value.
        found: u64,
        /// Its smallest allowed value.
        least: u64,
    },
    /// `worker_settings` is too long.
    #[error("the settings of the worker have {bytes} bytes, {WORKER_SETTINGS_BYTES_MAX} at most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The folder cannot be used. Fix its permissions, or choose another one.
    #[error("the folder `{path}` cannot be used: {reason}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
}

impl SandboxRunnerSettings {
    /// Creates the folder, resolves the paths, and hides the runner's own folders from tools.
    pub(crate) fn prepared(mut self) -> Result<Self, SettingsError> {
        match self.policy.mode {
            SandboxMode::Full => return Err(SettingsError::NoSandbox),
            SandboxMode::ReadOnly | SandboxMode::Workspace => {}
        }
        let limits = &self.limits;
        at_least("memory_bytes_max", limits.memory_bytes_max, MEMORY_BYTES_MIN)?;
        at_least("cpu_s_max", limits.cpu_s_max, 1)?;
        // The first process, and the working one.
        at_least("processes_max", limits.processes_max, 2)?;
        at_least("open_files_max", limits.open_files_max, 64)?;
        at_least("workers_max", self.workers_max as u64, 1)?;
        let bytes = self.worker_settings.to_string().len();
        if bytes > WORKER_SETTINGS_BYTES_MAX {
            return Err(SettingsError::TooLong { bytes });
        }
        self.policy.tmp = private(&self.policy.tmp)?;
        kept_files::remove_old(&self.policy.tmp);
        self.policy = self.policy.resolved()?;
        self.policy.hidden.push(self.policy.tmp.clone());
        Ok(self)
    }
}

fn at_least(name: &'static str, found: u64, least: u64) -> Result<(), SettingsError> {
    if found < least { Err(SettingsError::TooLittle { name, found, least }) } else { Ok(()) }
}

fn private(path: &Path) -> Result<PathBuf, SettingsError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| path.canonicalize())
        .map_err(|error| SettingsError::Folder { path: path.to_owned(), reason: error.to_string() })
}
