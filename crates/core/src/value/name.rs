//! Names that users choose and that appear in file names, prompts and log lines.
//!
//! A name is checked once, here. Code that holds a name may use it as a path component or
//! between brackets without another check.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::interaction::is_invisible;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Names no agent may have: as a sender of interactions they have another meaning.
pub const RESERVED_NAMES: [&str; 2] = ["user", "system"];

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is blank.
    #[error("a name must not be blank")]
    Blank,
    /// Over [`NAME_BYTES_MAX`].
    #[error("a name may have {NAME_BYTES_MAX} bytes at most, this one has {bytes}")]
    TooLong {
        /// Length after trimming, in bytes.
        bytes: usize,
    },
    /// A character outside the allowed set.
    #[error("a name may hold letters, digits, spaces and `_ - .`, not {found:?}")]
    Forbidden {
        /// The first character that is not allowed.
        found: char,
    },
    /// The name would be a hidden file or a command-line option.
    #[error("a name must start with a letter, a digit or `_`, not {found:?}")]
    Start {
        /// The first character.
        found: char,
    },
    /// One of [`RESERVED_NAMES`].
    #[error("the name `{name}` is reserved")]
    Reserved {
        /// The reserved name.
        name: String,
    },
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, reserved: $reserved:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Trims `text` and checks it.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                parse_name(text, $reserved).map(Self)
            }

            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of an agent. Unique in a project; also the stem of its markdown file.
    AgentName, reserved: &RESERVED_NAMES
}
name! {
    /// The label of an external source of events: `webhook`, `stdin`, `cron`.
    SourceName, reserved: &[]
}

impl SourceName {
    /// The name to use for an agent whose own name is not valid.
    pub(crate) fn nameless() -> Self {
        Self("agent".to_owned())
    }
}

/// An invisible letter would make two names look the same.
fn is_allowed(c: char) -> bool {
    (c.is_alphanumeric() && !is_invisible(c)) || " _-.".contains(c)
}

fn parse_name(text: &str, reserved: &[&str]) -> Result<String, NameError> {
    let text = text.trim();
    let first = text.chars().next().ok_or(NameError::Blank)?;
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: text.len() });
    }
    if let Some(found) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(NameError::Forbidden { found });
    }
    if !(first.is_alphanumeric() || first == '_') {
        return Err(NameError::Start { found: first });
    }
    if reserved.contains(&text.to_lowercase().as_str()) {
        return Err(NameError::Reserved { name: text.to_owned() });
    }
    Ok(text.to_owned())
}
