//! Whose work a key sees. Any other word is refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whose work a key sees and may change. Over interfaces for foreign clients each key has its own alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Over the native API the work of the whole project.
    #[default]
    All,
    /// On every interface only what the key itself created: any other id is answered as one that does not exist.
    Own,
}

/// The word is not a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `all` or `own`")]
pub struct KeyScopeError;

impl KeyScope {
    /// Both scopes, the wider one first.
    pub const ALL: [Self; 2] = [Self::All, Self::Own];

    /// The word in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Own => "own",
        }
    }

    /// Whether this scope has all that `other` has.
    pub fn covers(self, other: Self) -> bool {
        self == Self::All || other == Self::Own
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::All
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KeyScope {
    type Err = KeyScopeError;

    fn from_str(text: &str) -> Result<Self, KeyScopeError> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(KeyScopeError)
    }
}
