//! What the runner is given by whoever wires the binary. What cannot be a sandbox is refused here.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use antiphon_sandbox::{Mode, Policy, SandboxError, WorkerCommand};
use serde_json::Value;

use crate::limits::{Limits, MEMORY_BYTES_MIN};

/// Longest [`Settings::worker_settings`], in bytes of JSON.
pub const WORKER_SETTINGS_BYTES_MAX: usize = 1024 * 1024;

/// Workers at a time unless told otherwise. The next task waits for one to end.
pub const WORKERS_DEFAULT: usize = 32;

/// What the runner is given.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How a worker is started: with a program that calls
    /// [`worker_main`](crate::worker_main) before it does anything else.
    pub worker: WorkerCommand,
    /// What tools may touch. Its `tmp` is a folder of ours in which each worker gets one of its own;
    /// it is made if it is not there, and hidden from tools.
    pub policy: Policy,
    /// How much of the machine; an executor may ask for less.
    pub limits: Limits,
    /// Everything that workers find in their environment. No keys belong here.
    pub environment: Vec<(OsString, OsString)>,
    /// Handed to the worker as it is. Whatever runs there can read it.
    pub worker_settings: Value,
    /// Workers at a time.
    pub workers_max: usize,
}

/// Why there can be no runner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Change the policy.
    #[error(transparent)]
    Policy(#[from] SandboxError),
    /// A sandbox without restrictions is none.
    #[error("the runner `sandbox` needs a sandbox: choose the mode `workspace` or `read-only`")]
    NoSandbox,
    /// Give more.
    #[error("the limit `{name}` is {found}: a worker needs {least} at least")]
    TooLittle {
        /// Of what.
        name: &'static str,
        /// How much there is.
        found: u64,
        /// How much is needed.
        least: u64,
    },
    /// Pass less to the worker.
    #[error("the settings of the worker have {bytes} bytes, {WORKER_SETTINGS_BYTES_MAX} at most")]
    TooLong {
        /// How many.
        bytes: usize,
    },
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
    /// The same with its folder made, its paths resolved, and our own places hidden.
    pub(crate) fn prepared(mut self) -> Result<Self, SettingsError> {
        match self.policy.mode {
            Mode::Full => return Err(SettingsError::NoSandbox),
            Mode::ReadOnly | Mode::Workspace => {}
        }
        let limits = &self.limits;
        at_least("memory_bytes_max", limits.memory_bytes_max, MEMORY_BYTES_MIN)?;
        at_least("cpu_s_max", limits.cpu_s_max, 1)?;
        // The first process, and the one that works.
        at_least("processes_max", limits.processes_max, 2)?;
        at_least("open_files_max", limits.open_files_max, 64)?;
        at_least("workers_max", self.workers_max as u64, 1)?;
        let bytes = self.worker_settings.to_string().len();
        if bytes > WORKER_SETTINGS_BYTES_MAX {
            return Err(SettingsError::TooLong { bytes });
        }
        self.policy.tmp = private(&self.policy.tmp)?;
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
