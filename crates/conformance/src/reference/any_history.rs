//! Histories of every kind of message, in every order: what a provider must be able to send.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, ImageBlock, InputBlock, Message, ModelRef, OpaqueBlock,
    RawJson, Signature, StopReason, ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId,
    ToolResultMessage, Usage, UserMessage,
};
use chrono::DateTime;

/// Texts, among them some that a provider refuses or that need quoting.
const TEXTS: [&str; 5] = ["", " \n", "Go on.", "\"quoted\" \\ \u{7f}\u{1f600}", "a\nb"];

/// A history of `count` messages, the same for the same seed. Its answers are of `model` or of another one.
/// Nothing about it is in order: calls without results, results without calls, ids used twice, answers that
/// broke off, empty messages.
pub fn any_history(seed: u64, count: usize, model: &ModelRef) -> Vec<Arc<Message>> {
    let mut dice = Dice(seed);
    (0..count).map(|_| dice.message(model).into()).collect()
}

/// Checks that a wire which keeps parts of a history encoded sends the same bytes as for the whole, while the
/// history grows message by message. `encode` returns the body of a request with these messages, which ends with
/// their items, and the items of the whole history encoded at once; its second argument says that another history
/// begins.
pub fn check_growing_histories(
    model: &ModelRef,
    mut encode: impl FnMut(&[Arc<Message>], bool) -> (Vec<u8>, Vec<u8>),
) {
    let mut check = |messages: &[Arc<Message>], name: &str| {
        for count in 0..=messages.len() {
            let (body, items) = encode(&messages[..count], count == 0);
            let items = format!("[{}]}}", String::from_utf8_lossy(&items));
            let body = String::from_utf8_lossy(&body);
            let end = body.len().checked_sub(items.len()).and_then(|at| body.get(at..));
            assert_eq!(end.unwrap_or(&body), items, "{name}, {count} messages");
        }
    };
    for seed in 0..60 {
        check(&any_history(seed, 90, model), &format!("seed {seed}"));
    }
    // So long that requests share parts of it.
    let mut long = any_history(60, 90, model);
    for at in [0, 30, 60] {
        long[at] = UserMessage::text("\"Go on.\"\n".repeat(4_000), DateTime::UNIX_EPOCH).into();
    }
    check(&long, "a long history");
}

/// A small generator of numbers (SplitMix64): the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap_or_default()
    }

    fn text(&mut self) -> &'static str {
        TEXTS[self.roll(TEXTS.len())]
    }

    fn call_id(&mut self) -> ToolCallId {
        let text = ["call_1", "call_2", "toolu|3", "call_4"][self.roll(4)];
        ToolCallId::parse(text).unwrap_or_else(|_| ToolCallId::from(uuid::Uuid::nil()))
    }

    fn message(&mut self, model: &ModelRef) -> Message {
        let timestamp = DateTime::UNIX_EPOCH;
        match self.roll(5) {
            0 => UserMessage { content: self.input(), timestamp }.into(),
            1 | 2 => ToolResultMessage {
                tool_call_id: self.call_id(),
                tool_name: ["read", "no tool"][self.roll(2)].to_owned(),
                content: self.input(),
                is_error: self.roll(2) == 0,
                timestamp,
            }
            .into(),
            _ => self.answer(model).into(),
        }
    }

    fn input(&mut self) -> Vec<InputBlock> {
        (0..self.roll(3)).map(|_| self.input_block()).collect()
    }

    fn input_block(&mut self) -> InputBlock {
        match ImageBlock::new("image/png", vec![1, 2, 3]) {
            Ok(image) if self.roll(5) == 0 => InputBlock::Image(image),
            Ok(_) | Err(_) => InputBlock::text(self.text()),
        }
    }

    fn answer(&mut self, model: &ModelRef) -> AssistantMessage {
        let stop_reasons =
            [StopReason::EndTurn, StopReason::ToolUse, StopReason::Aborted, StopReason::Error];
        let other = ModelRef::parse("other/model").ok();
        AssistantMessage {
            content: (0..self.roll(4)).map(|_| self.block()).collect(),
            stop_reason: stop_reasons[self.roll(8).saturating_sub(4)],
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: if self.roll(4) == 0 { other } else { Some(model.clone()) },
            timestamp: DateTime::UNIX_EPOCH,
        }
    }

    fn block(&mut self) -> AssistantBlock {
        let signature = (self.roll(2) == 0).then(|| Signature("c2lnbmVk".to_owned()));
        match self.roll(5) {
            0 => AssistantBlock::Thinking(ThinkingBlock {
                thinking: self.text().to_owned(),
                signature,
            }),
            1 => AssistantBlock::Opaque(OpaqueBlock {
                kind: "redacted_thinking".to_owned(),
                value: RawJson::parse(r#"{"type":"redacted_thinking","data":"eA=="}"#)
                    .unwrap_or_else(|_| RawJson::empty_object()),
            }),
            2 => AssistantBlock::text(self.text()),
            _ => AssistantBlock::ToolCall(ToolCallBlock {
                id: self.call_id(),
                name: "read".to_owned(),
                arguments: match self.roll(4) {
                    0 => ToolArguments::Malformed("{\"path\":".to_owned()),
                    _ => ToolArguments::Object(RawJson::empty_object()),
                },
                signature,
            }),
        }
    }
}
