//! The name that a person gives a key. It follows the rules of all names and need not be unique.

use std::fmt;
use std::str::FromStr;

use antiphon_core::{NameError, SourceName};
use serde::{Deserialize, Serialize};

/// The name that a person gives a key: `laptop`, `nightly build`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyName(SourceName);

impl KeyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for KeyName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
