//! What the processes of a worker are started with, one after the other.

use antiphon_sandbox::Policy;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// Where a process of a worker finds its [`Setup`].
pub(crate) const SETUP: &str = "ANTIPHON_TASK_WORKER";

/// Which process of a worker this is, and what it has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Setup {
    /// Outside; sees to it that everything is gone in the end. The `tmp` of its policy is taken
    /// away with it.
    Guard { purpose: Purpose, policy: Policy, limits: Limits },
    /// The first one inside; restricts itself, and counts what the others take.
    First { purpose: Purpose, policy: Policy, limits: Limits },
    /// Works on the task.
    Work { limits: Limits },
}

/// What a worker is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To see whether it can be restricted. It ends at once.
    Trial,
    /// To work.
    Work,
}

/// How the first process inside ends, and the guard with it: who looks from outside knows what
/// happened. Nothing inside can make it end in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The one that works is through.
    Over,
    /// It said in a frame why it could not even begin.
    Refused,
    /// There were more bytes in memory than allowed.
    Memory,
    /// More time was taken than allowed.
    Cpu,
    /// There were more processes than allowed.
    Processes,
    /// A protected place is protected no longer.
    Stale,
    /// The one that works aborted: for want of memory, or for a fault.
    Aborted,
    /// Somebody killed the one that works.
    Killed,
    /// The one that works failed in another way.
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

    /// `None` for what no process of ours says.
    pub(crate) fn of(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|exit| i32::from(exit.code()) == code)
    }
}
