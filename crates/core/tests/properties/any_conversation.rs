//! Any message, and any sequence of them.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, ImageBlock, InputBlock, Message, ModelRef, OpaqueBlock,
    RawJson, Signature, StopReason, TextBlock, ThinkingBlock, ToolArguments, ToolCallBlock,
    ToolCallId, ToolResultMessage, Usage, UserMessage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::any_json::{object, text, time, value};

pub(crate) fn model() -> impl Strategy<Value = ModelRef> {
    "[a-z0-9_.-]{1,8}/[!-~]{1,12}".prop_map(|text| ModelRef::parse(&text).unwrap())
}

pub(crate) fn usage() -> impl Strategy<Value = Usage> {
    let tokens = || option::of(any::<u64>());
    (any::<u64>(), any::<u64>(), tokens(), tokens()).prop_map(
        |(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)| Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
        },
    )
}

pub(crate) fn input_block() -> impl Strategy<Value = InputBlock> {
    let image =
        (select(&["image/png", "image/svg+xml", "image/x-icon"][..]), vec(any::<u8>(), 1..32))
            .prop_map(|(mime_type, data)| {
                InputBlock::Image(ImageBlock::new(mime_type, data).unwrap())
            });
    prop_oneof![text().prop_map(InputBlock::text), image]
}

fn signature() -> impl Strategy<Value = Option<Signature>> {
    option::of(text().prop_map(Signature))
}

fn arguments() -> impl Strategy<Value = ToolArguments> {
    prop_oneof![
        object().prop_map(ToolArguments::Object),
        text().prop_map(ToolArguments::Malformed),
        object().prop_map(|json| ToolArguments::Malformed(json.as_str().to_owned())),
    ]
}

/// Any block of an answer; ids of calls come from `ids`.
fn assistant_block(
    ids: impl Strategy<Value = ToolCallId>,
) -> impl Strategy<Value = AssistantBlock> {
    prop_oneof![
        text().prop_map(|text| AssistantBlock::Text(TextBlock { text })),
        (text(), signature()).prop_map(|(thinking, signature)| {
            AssistantBlock::Thinking(ThinkingBlock { thinking, signature })
        }),
        (ids, text(), arguments(), signature()).prop_map(|(id, name, arguments, signature)| {
            AssistantBlock::ToolCall(ToolCallBlock { id, name, arguments, signature })
        }),
        (text(), value()).prop_map(|(kind, value)| {
            AssistantBlock::Opaque(OpaqueBlock { kind, value: RawJson::of(&value).unwrap() })
        }),
    ]
}

fn stop_reason() -> impl Strategy<Value = StopReason> {
    use StopReason::{Aborted, EndTurn, Error, Length, ToolUse, Unknown};
    select(&[EndTurn, Length, ToolUse, Error, Aborted, Unknown][..])
}

/// Any message whose calls have ids from `ids`.
fn message_with<S: Strategy<Value = ToolCallId> + Clone>(ids: S) -> impl Strategy<Value = Message> {
    let answer = (
        vec(assistant_block(ids.clone()), 0..5),
        stop_reason(),
        text(),
        usage(),
        option::of(model()),
        time(),
    )
        .prop_map(|(content, stop_reason, raw_stop_reason, usage, model, timestamp)| {
            Message::Assistant(AssistantMessage {
                content,
                stop_reason,
                raw_stop_reason,
                usage,
                model,
                timestamp,
            })
        });
    let result = (ids, text(), vec(input_block(), 0..3), any::<bool>(), time()).prop_map(
        |(tool_call_id, tool_name, content, is_error, timestamp)| {
            Message::ToolResult(ToolResultMessage {
                tool_call_id,
                tool_name,
                content,
                is_error,
                timestamp,
            })
        },
    );
    prop_oneof![user_message().prop_map(Message::User), answer, result]
}

pub(crate) fn user_message() -> impl Strategy<Value = UserMessage> {
    (vec(input_block(), 0..3), time())
        .prop_map(|(content, timestamp)| UserMessage { content, timestamp })
}

/// Any message.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let id = |text: String| ToolCallId::parse(&text).ok();
    message_with("[^\\s\\p{Cc}]{1,20}".prop_filter_map("no id", id))
}

/// Any sequence of messages, with so few ids that calls and results meet, miss and collide.
pub(crate) fn conversation() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let ids = select(&["a", "b", "c:c", "call_0", "call_1"][..])
        .prop_map(|text| ToolCallId::parse(text).unwrap());
    vec(message_with(ids).prop_map(Arc::new), 0..16)
}
