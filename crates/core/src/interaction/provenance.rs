//! Provenance: where an interaction or a task came from, as Antiphon itself saw it.
//!
//! Admission stamps it, and the journal stores it. A sender cannot choose it: [`Sender`](crate::Sender)
//! is what a message says about itself, the provenance is which interface and which credentials it came
//! through. It decides what may be typed into a program that no sandbox restricts.
//!
//! | text            | came from                                            | is a person |
//! |-----------------|------------------------------------------------------|-------------|
//! | `owner`         | a command of the owner, or the owner's token         | yes         |
//! | `admin_key:ID`  | a person's API key of level `admin`                  | yes         |
//! | `write_key:ID`  | a person's API key of level `write`                  | no          |
//! | `agent:NAME`    | another agent, its tools or its API key              | no          |
//! | `event:SOURCE`  | a message that names a source                        | no          |
//! | `webhook:SOURCE`| a webhook                                            | no          |
//! | `schedule:NAME` | a schedule                                           | no          |
//! | `file:NAME`     | a request file                                       | no          |
//! | `unknown`       | recorded without provenance: the least trusted       | no          |

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where an interaction or a task came from. One string in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Provenance {
    /// Recorded without provenance. The least trusted.
    #[default]
    Unknown,
    /// A command of the owner, or the owner's token.
    Owner,
    /// A person's API key of level `admin`, by id.
    AdminKey(String),
    /// A person's API key of level `write`, by id.
    WriteKey(String),
    /// Another agent, by name.
    Agent(String),
    /// A message that names a source.
    Event(String),
    /// A webhook, by source.
    Webhook(String),
    /// A schedule, by source.
    Schedule(String),
    /// A request file, by requester.
    File(String),
}

impl Provenance {
    /// Whether a person sent it: the owner, or the holder of an admin key.
    pub fn is_person(&self) -> bool {
        match self {
            Self::Owner | Self::AdminKey(_) => true,
            Self::Unknown
            | Self::WriteKey(_)
            | Self::Agent(_)
            | Self::Event(_)
            | Self::Webhook(_)
            | Self::Schedule(_)
            | Self::File(_) => false,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Reads the string form. A text that is none of them is [`Provenance::Unknown`].
    pub fn parse(text: &str) -> Self {
        let Some((kind, name)) = text.split_once(':') else {
            return if text == "owner" { Self::Owner } else { Self::Unknown };
        };
        let name = name.to_owned();
        match kind {
            "admin_key" => Self::AdminKey(name),
            "write_key" => Self::WriteKey(name),
            "agent" => Self::Agent(name),
            "event" => Self::Event(name),
            "webhook" => Self::Webhook(name),
            "schedule" => Self::Schedule(name),
            "file" => Self::File(name),
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Owner => f.write_str("owner"),
            Self::AdminKey(id) => write!(f, "admin_key:{id}"),
            Self::WriteKey(id) => write!(f, "write_key:{id}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Event(source) => write!(f, "event:{source}"),
            Self::Webhook(source) => write!(f, "webhook:{source}"),
            Self::Schedule(name) => write!(f, "schedule:{name}"),
            Self::File(name) => write!(f, "file:{name}"),
        }
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Provenance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::Provenance;

    #[test]
    fn every_provenance_reads_back_from_its_text() {
        let name = || "a:b c".to_owned();
        for provenance in [
            Provenance::Unknown,
            Provenance::Owner,
            Provenance::AdminKey(name()),
            Provenance::WriteKey(name()),
            Provenance::Agent(name()),
            Provenance::Event(name()),
            Provenance::Webhook(name()),
            Provenance::Schedule(name()),
            Provenance::File(name()),
        ] {
            assert_eq!(Provenance::parse(&provenance.to_string()), provenance);
        }
    }

    #[test]
    fn what_is_not_understood_is_trusted_least() {
        for text in ["", "Owner", "owner ", "root", "owner:me", "admin", "person:me"] {
            let provenance = Provenance::parse(text);
            assert_eq!(provenance, Provenance::Unknown, "{text}");
            assert!(!provenance.is_person());
        }
    }
}
