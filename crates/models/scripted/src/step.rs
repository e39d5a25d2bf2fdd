//! One step of a reply. A step without a kind, with two kinds, or with a field that its kind does
//! not have is refused.

mod call;
mod failure;
mod opaque;

use antiphon_core::ProviderError;
use serde::Deserialize;

use crate::answer_builder::ANSWER_BYTES_MAX;
use crate::pace::Delay;
use crate::template::Template;
pub(crate) use call::Call;
use failure::Failure;
use opaque::Opaque;

/// Most repetitions of a text.
pub const REPEAT_MAX: u32 = 10_000_000;

/// One step of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Text {
        text: Template,
        repeat: Repeat,
        end: End,
    },
    Thinking {
        thinking: Template,
        signature: Option<String>,
        end: End,
    },
    Call {
        call: Call,
        end: End,
    },
    Opaque(Opaque),
    /// A keep-alive without content.
    Alive,
    /// A pause.
    Pause(Delay),
    /// The answer fails.
    Fail(ProviderError),
    /// The answer ends incomplete.
    Cut,
    /// Nothing more is sent.
    Stall,
}

/// Whether the end of a block is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Said,
    /// The block is cut off by what follows, or closed by the end of the answer.
    Omitted,
}

/// Number of repetitions of a text, from 1 to [`REPEAT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct Repeat(u32);

impl Step {
    /// The name of the field, if the step ends the answer.
    pub(crate) fn ends_answer(&self) -> Option<&'static str> {
        match self {
            Self::Fail(_) => Some("error"),
            Self::Cut => Some("cut"),
            Self::Stall => Some("stall"),
            Self::Text { .. }
            | Self::Thinking { .. }
            | Self::Call { .. }
            | Self::Opaque(_)
            | Self::Alive
            | Self::Pause(_) => None,
        }
    }
}

impl Repeat {
    const ONCE: Self = Self(1);

    pub(crate) fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl TryFrom<u32> for Repeat {
    type Error = String;

    fn try_from(times: u32) -> Result<Self, String> {
        if (1..=REPEAT_MAX).contains(&times) {
            Ok(Self(times))
        } else {
            Err(format!("`repeat` must be from 1 to {REPEAT_MAX}, not {times}"))
        }
    }
}

/// A step as the user writes it: any field may be present.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepWire {
    text: Option<Template>,
    thinking: Option<Template>,
    call: Option<Call>,
    opaque: Option<Opaque>,
    alive: Option<True>,
    delay_ms: Option<Delay>,
    error: Option<Failure>,
    cut: Option<True>,
    stall: Option<True>,
    repeat: Option<Repeat>,
    signature: Option<String>,
    unfinished: Option<True>,
}

impl TryFrom<StepWire> for Step {
    type Error = String;

    fn try_from(wire: StepWire) -> Result<Self, String> {
        let end = wire.unfinished.map_or(End::Said, |True| End::Omitted);
        let (repeat, signature) = (wire.repeat.unwrap_or(Repeat::ONCE), wire.signature.clone());
        let kinds = [
            wire.text.map(|text| ("text", Self::Text { text, repeat, end })),
            wire.thinking.map(|thinking| {
                let step = Self::Thinking { thinking, signature, end };
                ("thinking", step)
            }),
            wire.call.map(|call| ("call", Self::Call { call, end })),
            wire.opaque.map(|opaque| ("opaque", Self::Opaque(opaque))),
            wire.alive.map(|True| ("alive", Self::Alive)),
            wire.delay_ms.map(|delay| ("delay_ms", Self::Pause(delay))),
            wire.error.map(|Failure(error)| ("error", Self::Fail(error))),
            wire.cut.map(|True| ("cut", Self::Cut)),
            wire.stall.map(|True| ("stall", Self::Stall)),
        ];
        let (name, step) = only(kinds.into_iter().flatten().collect())?;
        let given = [
            ("repeat", wire.repeat.is_some()),
            ("signature", wire.signature.is_some()),
            ("unfinished", wire.unfinished.is_some()),
        ];
        for (field, _) in given.iter().filter(|(_, given)| *given) {
            if !step.modifiers().contains(field) {
                return Err(format!("`{field}` does not belong to a step with `{name}`"));
            }
        }
        step.check_size()?;
        Ok(step)
    }
}

impl Step {
    /// The fields it may have besides the one that names its kind.
    fn modifiers(&self) -> &'static [&'static str] {
        match self {
            Self::Text { .. } => &["repeat", "unfinished"],
            Self::Thinking { .. } => &["signature", "unfinished"],
            Self::Call { .. } => &["unfinished"],
            Self::Opaque(_)
            | Self::Alive
            | Self::Pause(_)
            | Self::Fail(_)
            | Self::Cut
            | Self::Stall => &[],
        }
    }

    fn check_size(&self) -> Result<(), String> {
        if let Self::Text { text, repeat, .. } = self
            && text.literal_bytes().saturating_mul(repeat.get()) > ANSWER_BYTES_MAX
        {
            return Err(format!("`repeat` makes the text longer than {ANSWER_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

fn only(mut kinds: Vec<(&'static str, Step)>) -> Result<(&'static str, Step), String> {
    match (kinds.pop(), kinds.pop()) {
        (Some(kind), None) => Ok(kind),
        (None, _) => {
            Err("a step needs one of `text`, `thinking`, `call`, `opaque`, `alive`, `delay_ms`, \
             `error`, `cut`, `stall`"
                .to_owned())
        }
        (Some((second, _)), Some((first, _))) => {
            Err(format!("a step does one thing: write `{first}` and `{second}` as two steps"))
        }
    }
}

/// `true`. A `false` would look as if it disabled something that is never enabled.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "bool")]
struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, &'static str> {
        if value {
            Ok(Self)
        } else {
            Err("`alive`, `cut`, `stall` and `unfinished` can only be `true`: leave the field out \
                 instead")
        }
    }
}
