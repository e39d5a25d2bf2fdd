//! Patterns for the arguments of other tools.

use std::fmt;

use antiphon_core::RawJson;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;

use super::Match;
use super::wildcard::Wildcard;

/// `repository=acme/*`: a top-level argument of that name whose string value matches.
#[derive(Debug, Clone)]
pub(crate) struct ArgumentPattern {
    name: String,
    value: Wildcard,
}

impl ArgumentPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        match pattern.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), value: Wildcard::plain(value) })
            }
            Some(_) | None => {
                Err("its pattern is not `ARGUMENT=VALUE`, as for every tool but bash and those \
                     for files"
                    .to_owned())
            }
        }
    }

    /// Whether `arguments` match. A duplicate or non-string argument is a possible match, because
    /// how the tool reads it is unknown.
    pub(crate) fn matches(&self, arguments: &Arguments) -> Match {
        let Some(arguments) = &arguments.0 else { return Match::Possible };
        let mut values = arguments.iter().filter(|(name, _)| *name == self.name);
        let Some((_, value)) = values.next() else { return Match::No };
        match value.as_str() {
            Some(text) if values.next().is_none() => Match::from(self.value.matches(text)),
            Some(_) | None => Match::Possible,
        }
    }
}

/// The top-level arguments of a call, in order, with duplicates. `None`: the arguments are not an
/// object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments(pub(crate) Option<Vec<(String, Value)>>);

impl Arguments {
    pub(crate) fn read(json: &RawJson) -> Self {
        let mut deserializer = serde_json::Deserializer::from_str(json.as_str());
        Self(deserializer.deserialize_map(PairsVisitor).ok())
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
