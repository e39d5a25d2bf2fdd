//! Answers of a model on the wire of Anthropic, whole or cut off.

#![allow(dead_code, reason = "each test binary uses a part")]

use antiphon_model_server::{Ending, Part, Reply};
use serde_json::{Value, json};

/// A text that is streamed in two pieces.
pub(crate) fn text(text: &str) -> Reply {
    Reply::events(opening() + &text_block(text) + &closing("end_turn"))
}

/// A text that stops after its first half until the test releases it.
pub(crate) fn held_text(text: &str) -> Reply {
    let (first, rest) = text.split_at(text.len() / 2);
    let start = block_start(&json!({ "type": "text", "text": "" }));
    let rest = text_delta(rest) + &block_end() + &closing("end_turn");
    let parts = [Part::Bytes((opening() + &start + &text_delta(first)).into()), Part::Hold];
    let parts = parts.into_iter().chain([Part::Bytes(rest.into())]).collect();
    Reply { parts, ..Reply::events("") }
}

/// A call of `bash`.
pub(crate) fn bash(id: &str, command: &str) -> Reply {
    call(id, "bash", &json!({ "command": command }))
}

/// A call of a tool.
pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Reply {
    let block = call_block(id, name, &arguments.to_string()) + &block_end();
    Reply::events(opening() + &block + &closing("tool_use"))
}

/// A text that breaks off.
pub(crate) fn cut_text(text: &str) -> Reply {
    let half = text_block(text);
    let half = &half[..half.rfind("event: content_block_stop").unwrap_or(half.len())];
    Reply::events(opening() + half).ending(Ending::Cut)
}

/// A call of `bash` that breaks off in the middle of its arguments.
pub(crate) fn cut_call(id: &str, command: &str) -> Reply {
    let arguments = json!({ "command": command }).to_string();
    let half = &arguments[..arguments.len() / 2];
    Reply::events(opening() + &call_block(id, "bash", half)).ending(Ending::Cut)
}

/// A refusal of the server for now.
pub(crate) fn busy(status: u16, retry_after_ms: Option<u32>) -> Reply {
    let kind = match status {
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let body = json!({ "type": "error", "error": { "type": kind, "message": "busy" } });
    let reply = Reply::json(status, body.to_string());
    match retry_after_ms {
        Some(ms) => reply.header("retry-after-ms", &ms.to_string()),
        None => reply,
    }
}

/// The connection is closed without an answer.
pub(crate) fn gone() -> Reply {
    Reply::events("").ending(Ending::Raw)
}

/// Number of tool results in a request.
pub(crate) fn results(request: &Value) -> usize {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").count()
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn opening() -> String {
    let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
    event("message_start", json!({ "message": { "usage": usage } }))
}

fn block_start(block: &Value) -> String {
    event("content_block_start", json!({ "index": 0, "content_block": block }))
}

fn delta(delta: &Value) -> String {
    event("content_block_delta", json!({ "index": 0, "delta": delta }))
}

fn block_end() -> String {
    event("content_block_stop", json!({ "index": 0 }))
}

fn text_block(text: &str) -> String {
    let pieces = text.split_at(text.len() / 2);
    let start = block_start(&json!({ "type": "text", "text": "" }));
    start + &text_delta(pieces.0) + &text_delta(pieces.1) + &block_end()
}

fn text_delta(text: &str) -> String {
    delta(&json!({ "type": "text_delta", "text": text }))
}

/// A call without the end of its block.
fn call_block(id: &str, name: &str, arguments: &str) -> String {
    let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    block_start(&start) + &delta(&json!({ "type": "input_json_delta", "partial_json": arguments }))
}

fn closing(stop_reason: &str) -> String {
    let delta = json!({ "stop_reason": stop_reason });
    event("message_delta", json!({ "delta": delta, "usage": { "output_tokens": 5 } }))
        + &event("message_stop", json!({}))
}
