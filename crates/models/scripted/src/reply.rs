//! A reply of a script: conditions, pace, steps and end. A reply with steps that could never take
//! effect is refused.

use antiphon_core::StopReason;
use antiphon_core::port::StopSignal;
use serde::Deserialize;
use toml::Spanned;

use crate::condition::Condition;
use crate::error::Fault;
use crate::pace::{ChunkChars, Delay, Pace};
use crate::step::{Step, StepWire};
use crate::tokens::ScriptedUsage;

/// Most steps in one reply. More than [`BLOCKS_MAX`](antiphon_core::stream::BLOCKS_MAX), so that a
/// script can exceed that limit.
pub const STEPS_MAX: usize = 2048;

/// A reply of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) when: Condition,
    pub(crate) steps: Vec<Step>,
    pub(crate) calls: Calls,
    pub(crate) usage: ScriptedUsage,
    chunk_chars: Option<ChunkChars>,
    delay: Option<Delay>,
    stop: Option<StopReason>,
    raw_stop: Option<String>,
}

/// How the deltas of adjacent calls are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// One call after the other.
    InOrder,
    /// One delta of each in turn.
    Interleaved,
}

impl Reply {
    /// Its own pace if it has one, else the script's.
    pub(crate) fn pace(&self, script: Pace) -> Pace {
        Pace {
            chunk_chars: self.chunk_chars.unwrap_or(script.chunk_chars),
            delay: self.delay.unwrap_or(script.delay),
        }
    }

    /// The stop reason of the answer.
    pub(crate) fn stop(&self) -> StopSignal {
        let calls = self.steps.iter().any(|step| matches!(step, Step::Call { .. }));
        let reason =
            self.stop.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::EndTurn });
        let raw = match reason {
            StopReason::EndTurn => "end_turn",
            StopReason::Length => "length",
            StopReason::ToolUse => "tool_use",
            StopReason::Error => "error",
            StopReason::Aborted => "aborted",
            StopReason::Unknown => "unknown",
        };
        StopSignal { reason, raw: self.raw_stop.clone().unwrap_or_else(|| raw.to_owned()) }
    }
}

/// A reply as the user writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplyWire {
    #[serde(default)]
    when: Condition,
    chunk_chars: Option<ChunkChars>,
    delay_ms: Option<Delay>,
    #[serde(default)]
    interleave: bool,
    stop: Option<StopReason>,
    raw_stop: Option<String>,
    usage: Option<ScriptedUsage>,
    #[serde(rename = "step", alias = "steps")]
    steps: Option<Vec<Spanned<StepWire>>>,
}

impl TryFrom<Spanned<ReplyWire>> for Reply {
    type Error = Fault;

    fn try_from(mut wire: Spanned<ReplyWire>) -> Result<Self, Fault> {
        let steps = match wire.get_mut().steps.take() {
            Some(steps) if steps.len() <= STEPS_MAX => read_steps(steps)?,
            Some(steps) => {
                let reason = format!(
                    "a reply may have {STEPS_MAX} steps at most, this one has {}",
                    steps.len()
                );
                return Err(Fault::of(&wire, reason));
            }
            None => {
                let reason = "a reply needs steps: write `steps = []` for an empty answer";
                return Err(Fault::of(&wire, reason));
            }
        };
        if let Some(end) = steps.last().and_then(Step::ends_answer)
            && let Some(field) = wire.get_ref().closing_field()
        {
            let reason =
                format!("`{field}` is never sent in a reply that ends with `{end}`: remove one");
            return Err(Fault::of(&wire, reason));
        }
        let wire = wire.into_inner();
        Ok(Self {
            when: wire.when,
            steps,
            calls: if wire.interleave { Calls::Interleaved } else { Calls::InOrder },
            usage: wire.usage.unwrap_or_default(),
            chunk_chars: wire.chunk_chars,
            delay: wire.delay_ms,
            stop: wire.stop,
            raw_stop: wire.raw_stop,
        })
    }
}

impl ReplyWire {
    /// A field about the end of a complete answer, if there is one.
    fn closing_field(&self) -> Option<&'static str> {
        let given = [
            ("stop", self.stop.is_some()),
            ("raw_stop", self.raw_stop.is_some()),
            ("usage", self.usage.is_some()),
        ];
        given.into_iter().find_map(|(field, given)| given.then_some(field))
    }
}

fn read_steps(wires: Vec<Spanned<StepWire>>) -> Result<Vec<Step>, Fault> {
    let mut steps: Vec<Step> = Vec::with_capacity(wires.len());
    for wire in wires {
        let offset = wire.span().start;
        if let Some(end) = steps.last().and_then(Step::ends_answer) {
            let reason = format!("nothing can follow `{end}`: remove this step");
            return Err(Fault { offset, reason });
        }
        let step = Step::try_from(wire.into_inner());
        steps.push(step.map_err(|reason| Fault { offset, reason })?);
    }
    Ok(steps)
}
