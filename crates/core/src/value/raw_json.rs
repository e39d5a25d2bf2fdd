//! JSON kept as the text that arrived.
//!
//! What a model wrote must reach the tool, the journal and the next request unchanged:
//! `1.0` stays `1.0`, a 30-digit integer keeps its digits, key order and duplicates survive. Only
//! line breaks between tokens become spaces, because events are written one per line.
//! Refused are texts that are not JSON, texts that cannot be read as values (`1e999`, half a
//! surrogate pair) and texts nested deeper than [`DEPTH_MAX`], so that no later parser fails or
//! overflows its stack.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// Deepest nesting of arrays and objects. `serde_json` itself stops at 127; the rest is for the
/// message and the event around it.
pub const DEPTH_MAX: usize = 100;

/// Why a text cannot be kept as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawJsonError {
    /// The text is not JSON.
    #[error("not valid JSON: {reason}")]
    Syntax {
        /// Error of the parser, with line and column.
        reason: String,
    },
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("JSON is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
}

/// One JSON value, byte for byte as it was written. Two values are equal when their bytes are.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Checks `text` and keeps it, without surrounding white space.
    pub fn parse(text: &str) -> Result<Self, RawJsonError> {
        let raw: Box<RawValue> = serde_json::from_str(text)
            .map_err(|error| RawJsonError::Syntax { reason: error.to_string() })?;
        Self::check(raw)
    }

    /// The JSON text of a value in memory.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, RawJsonError> {
        let raw = serde_json::value::to_raw_value(value)
            .map_err(|error| RawJsonError::Syntax { reason: error.to_string() })?;
        Self::check(raw)
    }

    /// `{}`.
    #[expect(clippy::expect_used, reason = "`{}` is JSON")]
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).expect("`{}` is JSON"))
    }

    /// `text` as a JSON string.
    #[expect(clippy::expect_used, reason = "every text is a JSON string")]
    pub fn string(text: &str) -> Self {
        Self(serde_json::value::to_raw_value(text).expect("every text is a JSON string"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Reads the value as a `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    fn check(raw: Box<RawValue>) -> Result<Self, RawJsonError> {
        let syntax = |error: serde_json::Error| RawJsonError::Syntax { reason: error.to_string() };
        if depth(raw.get()) > DEPTH_MAX {
            return Err(RawJsonError::TooDeep);
        }
        serde_json::from_str::<serde_json::Value>(raw.get()).map_err(syntax)?;
        if !raw.get().contains(['\n', '\r']) {
            return Ok(Self(raw));
        }
        // A line break within a JSON string is escaped: these are between tokens.
        RawValue::from_string(raw.get().replace(['\n', '\r'], " ")).map(Self).map_err(syntax)
    }
}

/// Nesting of a text that is known to be JSON. `serde_json` skips raw values without
/// counting, so the count is made here, without recursion.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(Box::<RawValue>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
