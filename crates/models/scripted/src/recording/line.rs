//! One line of a recording: a JSON object with the number of its exchange and one of `request`,
//! `piece` and `end`. Anything else is refused.

use antiphon_core::{Piece, ProviderError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use antiphon_core::redaction::redact_keys;

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Number of its exchange.
    pub(crate) exchange: u64,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// The JSON of the request, byte for byte.
    Request(String),
    Piece(Piece),
    End(Ending),
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer was complete.
    Done,
    /// The source ended before the answer did.
    Cut,
    /// The reader dropped it.
    Dropped,
    Failed(ProviderError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineWire {
    exchange: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    piece: Option<Piece>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<EndWire>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndWire {
    Done,
    Cut,
    Dropped,
    Failed(ProviderError),
}

impl Line {
    /// The line with its line break.
    pub(crate) fn write(self) -> Result<Vec<u8>, serde_json::Error> {
        let mut wire = LineWire { exchange: self.exchange, request: None, piece: None, end: None };
        match self.body {
            Body::Request(json) => wire.request = Some(RawValue::from_string(json)?),
            Body::Piece(Piece::Done) => wire.end = Some(EndWire::Done),
            Body::Piece(piece) => wire.piece = Some(piece),
            Body::End(ending) => wire.end = Some((&ending).into()),
        }
        let mut line = serde_json::to_vec(&wire)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Parses a line without its line break.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let wire: LineWire = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let body = match (wire.request, wire.piece, wire.end) {
            (Some(request), None, None) => Body::Request(request.get().to_owned()),
            (None, Some(Piece::Done), None) => {
                return Err("`done` is not a piece: it is an `end`".to_owned());
            }
            (None, Some(piece), None) => Body::Piece(piece),
            (None, None, Some(end)) => Body::End(end.into()),
            (_, _, _) => return Err("not one of `request`, `piece` and `end`".to_owned()),
        };
        Ok(Self { exchange: wire.exchange, body })
    }
}

impl From<&Ending> for EndWire {
    fn from(ending: &Ending) -> Self {
        match ending {
            Ending::Done => Self::Done,
            Ending::Cut => Self::Cut,
            Ending::Dropped => Self::Dropped,
            // Without what looks like a key: some providers repeat it.
            Ending::Failed(error) => Self::Failed(error.clone().map_message(redact_keys)),
        }
    }
}

impl From<EndWire> for Ending {
    fn from(wire: EndWire) -> Self {
        match wire {
            EndWire::Done => Self::Done,
            EndWire::Cut => Self::Cut,
            EndWire::Dropped => Self::Dropped,
            EndWire::Failed(error) => Self::Failed(error),
        }
    }
}
