//! Startup configuration of the processes of a worker.

use antiphon_sandbox::Policy;
use serde::{Deserialize, Serialize};

use crate::kept_files::KeptFiles;
use crate::limits::WorkerLimits;

/// The environment variable that contains the [`Setup`] of a process.
pub(crate) const SETUP: &str = "ANTIPHON_TASK_WORKER";

/// Role of a process of a worker, with its parameters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Setup {
    /// Outside; cleans up at the end. Removes the `tmp` of its policy, except what is kept.
    Guard { purpose: Purpose, policy: Policy, limits: WorkerLimits, kept: Option<KeptFiles> },
    /// The first process inside; restricts itself, and measures resources.
    First { purpose: Purpose, policy: Policy, limits: WorkerLimits },
    /// Works on the task.
    Work { limits: WorkerLimits },
}

/// Why a worker is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To check whether it can be restricted. It ends at once.
    Trial,
    /// To work on a task.
    Work,
}

/// Exit codes of the first process inside, and of the guard: they tell the runner what happened. No
/// process inside can produce another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work is done.
    Over,
    /// It reported in a frame why it could not start.
    Refused,
    /// The memory limit was exceeded.
    Memory,
    /// The CPU time limit was exceeded.
    Cpu,
    /// The process limit was exceeded.
    Processes,
    /// A protected path is no longer protected.
    Stale,
    /// The working process aborted: for lack of memory, or for a bug.
    Aborted,
    /// The working process was killed.
    Killed,
    /// The working process failed in another way.
    Broken,
}

impl Exit {
    const ALL: [Self; 9] = [
        Self::Over,
        Self::Refused,
        Self::Memory,
        Self::Cpu,
        Self::Processes,
        Self::Stale,
        Self::Aborted,
        Self::Killed,
        Self::Broken,
    ];

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Over => 0,
            Self::Refused => 80,
            Self::Memory => 81,
            Self::Cpu => 82,
            Self::Processes => 83,
            Self::Stale => 84,
            Self::Aborted => 85,
            Self::Killed => 86,
            Self::Broken => 87,
        }
    }

    /// `None` for any other code.
    pub(crate) fn of(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|exit| i32::from(exit.code()) == code)
    }
}
