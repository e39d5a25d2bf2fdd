//! What the runner is made with. Settings that cannot work are refused before anything is run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::profile::TerminalProfile;

/// What the runner is made with.
#[derive(Clone)]
pub struct TerminalSettings {
    /// The profiles that the user has allowed: nothing else is run.
    pub profiles: BTreeMap<String, TerminalProfile>,
    /// Where sockets, recordings and contexts are kept: a folder of nobody else's (0700), made if it
    /// is not there.
    pub folder: PathBuf,
    /// The folder that programs work in.
    pub root: PathBuf,
    /// What programs find in their environment, `TERM` and the profile's own aside.
    pub environment: Vec<(OsString, OsString)>,
    /// The program that calls [`guard_main`](crate::guard_main).
    pub guard: GuardCommand,
}

/// How a guard is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Settings that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Change the profile.
    #[error("the terminal profile `{name}` is wrong: {reason}")]
    Profile {
        /// Which.
        name: String,
        /// Why.
        reason: String,
    },
    /// Change the folder, or what is there.
    #[error("cannot use `{}` for terminals: {reason}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
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
