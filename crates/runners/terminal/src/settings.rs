//! Configuration of the runner. Invalid settings are refused before anything is run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::profile::TerminalProfile;

/// Configuration of the runner.
#[derive(Clone)]
pub struct TerminalSettings {
    /// The profiles that the user has allowed. No other program is run.
    pub profiles: BTreeMap<String, TerminalProfile>,
    /// Folder for sockets, recordings and contexts: private (0700), created if it does not exist.
    pub folder: PathBuf,
    /// Working folder of the programs.
    pub root: PathBuf,
    /// Environment variables of the programs, without `TERM` and the profile's own.
    pub environment: Vec<(OsString, OsString)>,
    /// The program that calls [`guard_main`](crate::guard_main).
    pub guard: GuardCommand,
}

/// The command that starts a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<OsString>,
}

/// Why the settings are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A profile is invalid. Change it.
    #[error("the terminal profile `{name}` is wrong: {reason}")]
    Profile {
        /// Name of the profile.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder cannot be used. Fix its permissions, or choose another one.
    #[error("cannot use `{}` for terminals: {reason}", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// The error of the system.
        reason: String,
    },
}

impl std::fmt::Debug for TerminalSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold keys.
        f.debug_struct("TerminalSettings")
            .field("profiles", &self.profiles.keys())
            .field("folder", &self.folder)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
