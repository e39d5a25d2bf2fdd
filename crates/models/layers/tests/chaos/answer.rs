//! The answer to call `n`: on the wire, and as the expected message.

use antiphon_core::{
    AssistantBlock, RawJson, Signature, ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId,
};
use serde_json::{Value, json};

/// The offered tool.
pub(crate) const TOOL: &str = "note";

/// The events of the answer, one text each. The first has no content.
pub(crate) fn events(n: usize) -> Vec<String> {
    let mut events = vec![event(&json!({
        "type": "message_start",
        "message": {"usage": {"input_tokens": n, "output_tokens": 1}},
    }))];
    let in_words = (json!({"type": "text", "text": ""}), text(&words(n)));
    let blocks = match n % 4 {
        1 => vec![
            (json!({"type": "thinking", "thinking": ""}), thinking(&format!("Hm, {n}."))),
            in_words,
        ],
        2 => vec![(
            json!({"type": "tool_use", "id": format!("call_{n}"), "name": TOOL, "input": {}}),
            deltas("input_json_delta", "partial_json", &format!("{{\"n\": {n}}}")),
        )],
        _ => vec![in_words],
    };
    for (index, (start, deltas)) in blocks.into_iter().enumerate() {
        let block = json!({"type": "content_block_start", "index": index, "content_block": start});
        events.push(event(&block));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push(event(&delta));
            events.push(event(&json!({"type": "ping"})));
        }
        events.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    let stop = if n % 4 == 2 { "tool_use" } else { "end_turn" };
    events.push(event(&json!({
        "type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9},
    })));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

/// The blocks of the message.
pub(crate) fn content(n: usize) -> Vec<AssistantBlock> {
    let call = |id: ToolCallId, json: String| {
        AssistantBlock::ToolCall(ToolCallBlock {
            id,
            name: TOOL.to_owned(),
            arguments: ToolArguments::Object(RawJson::parse(&json).expect("JSON")),
            signature: None,
        })
    };
    match n % 4 {
        0 => vec![AssistantBlock::text(words(n))],
        1 => vec![
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: format!("Hm, {n}."),
                signature: Some(Signature("c2lnbmVk".to_owned())),
            }),
            AssistantBlock::text(words(n)),
        ],
        2 => vec![call(
            ToolCallId::parse(&format!("call_{n}")).expect("an id"),
            format!("{{\"n\": {n}}}"),
        )],
        // Calls found in text are numbered from 2^20, and ids are derived from that and the one
        // message.
        _ => vec![call(
            ToolCallId::parse("00000000-0000-0001-0000-000000100000").expect("an id"),
            format!("{{\"n\":{n}}}"),
        )],
    }
}

/// All text of the answer, as the model writes it.
pub(crate) fn words(n: usize) -> String {
    match n % 4 {
        0 => format!("Answer {n}, in words."),
        1 => format!("I thought of {n}."),
        2 => String::new(),
        _ => format!("```json\n{{\"name\": \"{TOOL}\", \"arguments\": {{\"n\":{n}}}}}\n```"),
    }
}

fn text(text: &str) -> Vec<Value> {
    deltas("text_delta", "text", text)
}

fn thinking(text: &str) -> Vec<Value> {
    let signature = json!({"type": "signature_delta", "signature": "c2lnbmVk"});
    deltas("thinking_delta", "thinking", text).into_iter().chain([signature]).collect()
}

/// A text in deltas of a few characters.
fn deltas(kind: &str, field: &str, text: &str) -> Vec<Value> {
    let chars: Vec<char> = text.chars().collect();
    let delta = |part: &[char]| json!({"type": kind, field: part.iter().collect::<String>()});
    chars.chunks(7).map(delta).collect()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
