//! Makes an answer of a reply and a request. Pure: nothing here waits. An answer over
//! [`ANSWER_BYTES_MAX`] is refused before it is made.

use std::collections::VecDeque;

use antiphon_core::{Piece, ProviderError};

use crate::block::{Block, Chunks};
use crate::pace::Pace;
use crate::playback::{Playback, PlaybackAction};
use crate::reply::{Calls, Reply};
use crate::request_facts::RequestFacts;
use crate::script::Script;
use crate::step::{Call, End, Step};
use crate::tokens::chars;

/// Most bytes of one answer, before JSON escapes in arguments. Twice
/// [`MESSAGE_BYTES_MAX`](antiphon_core::stream::MESSAGE_BYTES_MAX), so that a script can exceed
/// that limit.
pub const ANSWER_BYTES_MAX: usize = 2 * antiphon_core::stream::MESSAGE_BYTES_MAX;

/// Makes the answer of `script` to the request of `facts`.
pub(crate) fn build_answer(
    script: &Script,
    facts: &RequestFacts<'_>,
) -> Result<Playback, ProviderError> {
    let reply = script.reply(facts).ok_or_else(|| ProviderError::InvalidRequest {
        message: format!("no reply of {} fits this request: {facts}", script.model()),
    })?;
    let mut builder = AnswerBuilder {
        script,
        facts,
        pace: reply.pace(script.pace()),
        actions: VecDeque::new(),
        model_named: false,
        blocks: 0,
        calls: 0,
        bytes_left: ANSWER_BYTES_MAX,
        output_chars: 0,
    };
    builder.steps(reply)?;
    Ok(Playback::new(builder.actions, builder.pace.delay.duration()))
}

struct AnswerBuilder<'a> {
    script: &'a Script,
    facts: &'a RequestFacts<'a>,
    pace: Pace,
    actions: VecDeque<PlaybackAction>,
    /// Whether the model's name was sent.
    model_named: bool,
    blocks: u32,
    calls: u32,
    bytes_left: usize,
    output_chars: u64,
}

impl AnswerBuilder<'_> {
    fn steps(&mut self, reply: &Reply) -> Result<(), ProviderError> {
        let mut after_call = false;
        for step in &reply.steps {
            let is_call = matches!(step, Step::Call { .. });
            match step {
                Step::Text { text, repeat, end } => {
                    let bytes = text.rendered_bytes(self.facts);
                    self.spend(bytes.saturating_mul(repeat.get()))?;
                    let chunks = self.chunks(text.render(self.facts), repeat.get());
                    let block = Block::text(self.number(), chunks, *end);
                    self.actions.push_back(PlaybackAction::Blocks([block].into()));
                }
                Step::Thinking { thinking, signature, end } => {
                    self.spend(thinking.rendered_bytes(self.facts))?;
                    let chunks = self.chunks(thinking.render(self.facts), 1);
                    let block = Block::thinking(self.number(), chunks, signature.clone(), *end);
                    self.actions.push_back(PlaybackAction::Blocks([block].into()));
                }
                Step::Call { call, end } => {
                    let block = self.call(call, *end)?;
                    if after_call
                        && reply.calls == Calls::Interleaved
                        && let Some(PlaybackAction::Blocks(calls)) = self.actions.back_mut()
                    {
                        calls.push_back(block);
                    } else {
                        self.actions.push_back(PlaybackAction::Blocks([block].into()));
                    }
                }
                Step::Opaque(opaque) => {
                    self.spend(opaque.value.as_str().len())?;
                    self.output_chars += chars(opaque.value.as_str());
                    let piece = Piece::Opaque {
                        block: self.number(),
                        kind: opaque.kind.clone(),
                        value: opaque.value.clone(),
                    };
                    self.actions.push_back(PlaybackAction::Send(piece));
                }
                // Before the model's name: a server may send keep-alives before it answers.
                Step::Alive => self.actions.push_back(PlaybackAction::Send(Piece::Alive)),
                Step::Pause(delay) => {
                    self.actions.push_back(PlaybackAction::Pause(delay.duration()));
                }
                Step::Fail(error) => {
                    self.actions.push_back(PlaybackAction::Fail(error.clone()));
                    return Ok(());
                }
                Step::Cut => return Ok(()),
                Step::Stall => {
                    self.actions.push_back(PlaybackAction::Stall);
                    return Ok(());
                }
            }
            after_call = is_call;
        }
        self.finish(reply);
        Ok(())
    }

    fn call(&mut self, call: &Call, end: End) -> Result<Block, ProviderError> {
        self.spend(call.arguments.rendered_bytes(self.facts))?;
        let arguments = self.chunks(call.arguments.render(self.facts), 1);
        self.output_chars += chars(&call.name);
        let id =
            call.id.clone().unwrap_or_else(|| format!("call_{}_{}", self.facts.turn, self.calls));
        self.calls += 1;
        Ok(Block::call(
            self.number(),
            id,
            call.name.clone(),
            arguments,
            call.signature.clone(),
            end,
        ))
    }

    fn finish(&mut self, reply: &Reply) {
        self.name_model();
        let usage = reply.usage.of(self.facts.request, self.output_chars);
        self.actions.extend([
            PlaybackAction::Send(Piece::Usage(usage)),
            PlaybackAction::Send(Piece::Stop(reply.stop())),
            PlaybackAction::Send(Piece::Done),
        ]);
    }

    fn number(&mut self) -> u32 {
        self.name_model();
        let number = self.blocks;
        self.blocks += 1;
        number
    }

    /// Sends the model's name before its first output. Not before a failure: an overloaded model
    /// sends nothing.
    fn name_model(&mut self) {
        if !self.model_named {
            self.model_named = true;
            let model = self.script.model().clone();
            self.actions.push_back(PlaybackAction::Send(Piece::Model(model)));
        }
    }

    fn chunks(&mut self, text: String, times: usize) -> Chunks {
        let times_counted = u64::try_from(times).unwrap_or(u64::MAX);
        self.output_chars += chars(&text).saturating_mul(times_counted);
        Chunks::new(text, times, self.pace.chunk_chars.get())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ProviderError> {
        self.bytes_left =
            self.bytes_left.checked_sub(bytes).ok_or_else(|| ProviderError::InvalidRequest {
                message: format!(
                    "the reply of {} to this request has more than {ANSWER_BYTES_MAX} bytes",
                    self.script.model()
                ),
            })?;
        Ok(())
    }
}
