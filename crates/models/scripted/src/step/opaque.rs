//! A scripted opaque block, which only its own model understands. Its value must be JSON.

use antiphon_core::RawJson;
use serde::Deserialize;

/// An opaque block.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "OpaqueWire")]
pub(crate) struct Opaque {
    pub(crate) kind: String,
    pub(crate) value: RawJson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpaqueWire {
    kind: String,
    value_json: String,
}

impl TryFrom<OpaqueWire> for Opaque {
    type Error = String;

    fn try_from(wire: OpaqueWire) -> Result<Self, String> {
        Ok(Self {
            kind: wire.kind,
            value: RawJson::parse(&wire.value_json)
                .map_err(|error| format!("`value_json`: {error}"))?,
        })
    }
}
