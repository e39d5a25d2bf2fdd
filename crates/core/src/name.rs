//! Names that people choose and that end up in file names, prompts and log lines.
//!
//! A name is checked once, here; whatever holds one may put it into a path component or
//! between brackets without looking at it again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::interaction::is_invisible;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Names no agent may have, because they mean somebody else as the sender of an interaction.
pub const RESERVED_NAMES: [&str; 2] = ["user", "system"];

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing in it but white space.
    #[error("a name must not be blank")]
    Blank,
    /// Over [`NAME_BYTES_MAX`].
    #[error("a name may have {NAME_BYTES_MAX} bytes at most, this one has {bytes}")]
    TooLong {
        /// Its length after trimming.
        bytes: usize,
    },
    /// A character outside the allowed set.
    #[error("a name may hold letters, digits, spaces and `_ - .`, not {found:?}")]
    Forbidden {
        /// The first offender.
        found: char,
    },
    /// Would be a hidden file or a command-line option.
    #[error("a name must start with a letter, a digit or `_`, not {found:?}")]
    Start {
        /// Its first character.
        found: char,
    },
    /// One of [`RESERVED_NAMES`].
    #[error("the name `{name}` is reserved")]
    Reserved {
        /// The name.
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
            /// Trims `text` and takes it as a name, or says what is wrong with it.
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
    /// For somebody whose name is none.
    pub(crate) fn nameless() -> Self {
        Self("agent".to_owned())
    }
}

/// A letter that nobody can see would let one name pass for another.
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
