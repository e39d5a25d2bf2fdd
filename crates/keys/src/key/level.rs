//! Permission levels of keys: `read < write < admin`. Any other word is refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Permission level of a key. Each level includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Read tasks, agents, sessions and events.
    Read,
    /// Also start, message and cancel tasks.
    Write,
    /// Also change keys, settings and everything else.
    Admin,
}

/// The word is not a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `read`, `write` or `admin`")]
pub struct LevelError;

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Whether this level is sufficient where `needed` is required.
    pub fn allows(self, needed: Self) -> bool {
        self >= needed
    }

    /// The word in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(LevelError)
    }
}
