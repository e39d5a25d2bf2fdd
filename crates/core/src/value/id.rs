//! Identifiers. One newtype per noun, so that a task is never addressed by a session's id.
//!
//! Two families: UUIDs ([`MessageId`], [`AgentId`], [`InteractionId`]) for what only
//! Antiphon names, and short texts ([`TaskId`], [`SessionId`], [`ToolCallId`]) for what
//! other systems name too: a remote runner, a session file, a model. Both are JSON strings.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::hidden_text::is_invisible;

/// Longest text identifier, in bytes. Longer ones are refused.
pub const TEXT_ID_BYTES_MAX: usize = 256;

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("an identifier must not be empty")]
    Empty,
    /// Over [`TEXT_ID_BYTES_MAX`].
    #[error("an identifier may have {TEXT_ID_BYTES_MAX} bytes at most, this one has {bytes}")]
    TooLong {
        /// Length of the text, in bytes.
        bytes: usize,
    },
    /// White space or an invisible character, which would break log lines.
    #[error("an identifier must not contain white space or control characters")]
    Unprintable,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new random identifier (version 4).
            pub fn new() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` and takes it unchanged.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check_text_id(text)?;
                Ok(Self(text.into()))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// A short form that names it: the first digits of the random part of a UUID, or the whole of
            /// another text. The first digits of a whole UUID are its time, which its neighbors share.
            pub fn short(&self) -> &str {
                random_part(&self.0).map_or(&*self.0, |part| &part[..SHORT_DIGITS])
            }

            /// The last group of a UUID, which is random. `None` for another text.
            pub fn random_part(&self) -> Option<&str> {
                random_part(&self.0)
            }

            /// Whether it, or the random part of a UUID, begins with `start`.
            pub fn is_named_by(&self, start: &str) -> bool {
                let random = random_part(&self.0);
                self.0.starts_with(start) || random.is_some_and(|part| part.starts_with(start))
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid.to_string().into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(de::Error::custom)
            }
        }
    };
}

uuid_id! {
    /// Identifies one [canonical message](crate::CanonicalMessage).
    MessageId
}
uuid_id! {
    /// Identifies one live agent.
    AgentId
}
uuid_id! {
    /// Identifies one [interaction](crate::Interaction); a response names the request it answers.
    InteractionId
}
text_id! {
    /// Identifies one task. Antiphon's own ids are UUIDs (version 7); a remote runner may use others.
    TaskId
}
text_id! {
    /// Identifies one session.
    SessionId
}
text_id! {
    /// Identifies one tool call within a session; its result carries the same.
    ToolCallId
}
text_id! {
    /// Identifies one approval.
    ApprovalId
}

/// Digits of the random part of a UUID that a short form has.
const SHORT_DIGITS: usize = 8;

/// The last group of a UUID, which is random: 12 digits.
fn random_part(text: &str) -> Option<&str> {
    let uuid = Uuid::try_parse(text).is_ok() && text.len() == 36;
    if uuid { text.get(24..) } else { None }
}

fn check_text_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > TEXT_ID_BYTES_MAX {
        return Err(IdError::TooLong { bytes: text.len() });
    }
    // Most texts hold only letters, digits and hyphens.
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain && text.chars().any(|c| is_invisible(c) || c.is_whitespace()) {
        return Err(IdError::Unprintable);
    }
    Ok(())
}
