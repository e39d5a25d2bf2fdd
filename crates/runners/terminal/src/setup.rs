//! Startup configuration of the processes of a terminal, and their report.
//!
//! The command follows the guard's own arguments, where it may have any length.

use serde::{Deserialize, Serialize};

/// The environment variable that contains the [`Setup`] of a process.
pub(crate) const SETUP: &str = "ANTIPHON_TERMINAL_GUARD";

/// Role of the process and its parameters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) role: ProcessRole,
    /// Number of arguments that are not part of the command.
    pub(crate) own_args: usize,
}

/// Role of one of the two processes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum ProcessRole {
    /// Outlives every other process and cleans up.
    Guard,
    /// Becomes the program.
    Inner {
        /// Its parent.
        guard: i32,
    },
}

/// How a program ended: the only message of a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It could not be started.
    NotStarted {
        /// The error of the system.
        reason: String,
    },
    /// It exited.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal killed it.
    Killed {
        /// Number of the signal.
        signal: i32,
    },
}
