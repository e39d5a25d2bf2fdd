//! How far a key reaches: `read < write < admin`. Any other word is refused, with the words there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How far a key reaches. Each level may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Look at things.
    Read,
    /// Give work, and stop it.
    Write,
    /// Everything.
    Admin,
}

/// The word is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `read`, `write` or `admin`")]
pub struct LevelError;

impl Level {
    /// All of them, lowest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Whether this is enough where `needed` is needed.
    pub fn allows(self, needed: Self) -> bool {
        self >= needed
    }

    /// The word for it.
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
