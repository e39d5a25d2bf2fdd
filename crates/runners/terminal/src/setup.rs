//! What the processes of a terminal are started with, and what they say in the end.
//!
//! The command itself is behind the guard's own arguments: there it may be as long as any.

use serde::{Deserialize, Serialize};

/// Where a process of a terminal finds its [`Setup`].
pub(crate) const SETUP: &str = "ANTIPHON_TERMINAL_GUARD";

/// Which process this is, and what it has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) stage: Stage,
    /// How many of its arguments are not part of the command.
    pub(crate) own_args: usize,
}

/// Which of the two processes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Outlives everything and clears up.
    Guard,
    /// Becomes the program.
    Inside {
        /// Its parent.
        guard: i32,
    },
}

/// How a program ended: the one thing that a guard says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It could not be started.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// By itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// By a signal.
    Killed {
        /// Which.
        signal: i32,
    },
}
