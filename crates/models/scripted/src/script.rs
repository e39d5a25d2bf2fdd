//! A script: replies, tried in order. An invalid script, or one with a reply that could never be
//! chosen, is refused as a whole.

use antiphon_core::{MODEL_REF_BYTES_MAX, ModelRef};
use serde::Deserialize;
use toml::Spanned;

use crate::error::{Fault, ScriptError};
use crate::pace::{ChunkChars, Delay, Pace};
use crate::reply::{Reply, ReplyWire};
use crate::request_facts::RequestFacts;

/// Largest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1024 * 1024;

/// Most replies in one script.
pub const REPLIES_MAX: usize = 1024;

/// The name of a script without one.
const NAME_DEFAULT: &str = "script";

/// The script of a [`ScriptedProvider`](crate::ScriptedProvider).
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    model: ModelRef,
    pace: Pace,
    replies: Vec<Reply>,
}

impl Script {
    /// The scripts that come with Antiphon, from `examples/scripts`.
    pub const BUILTIN: &'static [&'static str] = &["flaky", "hello", "slow", "tools"];

    /// Parses a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLarge { bytes: text.len() });
        }
        let wire: ScriptWire =
            toml::from_str(text).map_err(|error| ScriptError::toml(text, &error))?;
        Self::try_from(wire).map_err(|fault| ScriptError::new(text, fault))
    }

    /// One of [`BUILTIN`](Self::BUILTIN); `None` for any other name.
    pub fn builtin(name: &str) -> Option<Self> {
        let text = match name {
            "flaky" => include_str!("../../../../examples/scripts/flaky.toml"),
            "slow" => include_str!("../../../../examples/scripts/slow.toml"),
            "hello" => include_str!("../../../../examples/scripts/hello.toml"),
            "tools" => include_str!("../../../../examples/scripts/tools.toml"),
            _ => return None,
        };
        // A test parses them all.
        Self::parse(text).ok()
    }

    /// The model name: `scripted/` and the script's name.
    pub fn model(&self) -> &ModelRef {
        &self.model
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace
    }

    /// The first matching reply.
    pub(crate) fn reply(&self, facts: &RequestFacts<'_>) -> Option<&Reply> {
        self.replies.iter().find(|reply| reply.when.fits(facts))
    }

    /// Whether any reply depends on the number of attempts.
    pub(crate) fn asks_attempt(&self) -> bool {
        self.replies.iter().any(|reply| reply.when.asks_attempt())
    }
}

/// A script as the user writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptWire {
    name: Option<Spanned<String>>,
    #[serde(default)]
    chunk_chars: ChunkChars,
    #[serde(default)]
    delay_ms: Delay,
    #[serde(rename = "reply", default)]
    replies: Vec<Spanned<ReplyWire>>,
}

impl TryFrom<ScriptWire> for Script {
    type Error = Fault;

    fn try_from(wire: ScriptWire) -> Result<Self, Fault> {
        Ok(Self {
            model: model(wire.name)?,
            pace: Pace { chunk_chars: wire.chunk_chars, delay: wire.delay_ms },
            replies: read_replies(wire.replies)?,
        })
    }
}

/// The model name for a script name.
fn model(name: Option<Spanned<String>>) -> Result<ModelRef, Fault> {
    let name = name.unwrap_or_else(|| Spanned::new(0..0, NAME_DEFAULT.to_owned()));
    ModelRef::parse(&format!("scripted/{}", name.get_ref())).map_err(|_| {
        let reason = format!(
            "`name` must not be empty, hold white space or make `scripted/NAME` longer than \
             {MODEL_REF_BYTES_MAX} bytes"
        );
        Fault::of(&name, reason)
    })
}

fn read_replies(wires: Vec<Spanned<ReplyWire>>) -> Result<Vec<Reply>, Fault> {
    if wires.is_empty() {
        return Err(Fault {
            offset: 0,
            reason: "a script needs at least one `[[reply]]`".to_owned(),
        });
    }
    if let Some(wire) = wires.get(REPLIES_MAX) {
        let reason = format!("a script may have {REPLIES_MAX} replies at most");
        return Err(Fault::of(wire, reason));
    }
    let mut replies: Vec<Reply> = Vec::with_capacity(wires.len());
    for wire in wires {
        if replies.last().is_some_and(|reply| reply.when.is_empty()) {
            let reason =
                "this reply is never used: the one before has no `when`, so it always fits";
            return Err(Fault::of(&wire, reason));
        }
        replies.push(Reply::try_from(wire)?);
    }
    Ok(replies)
}
