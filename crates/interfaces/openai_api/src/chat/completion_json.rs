//! A completion in OpenAI's shape: whole, and in chunks.

use antiphon_core::{TaskId, TokenUsage, ToolArguments, ToolCallBlock, Usage};
use antiphon_interface_transport::answer::{AnswerEnd, FinishReason};
use serde_json::{Value, json};

/// Fields that a completion and all of its chunks have.
#[derive(Debug, Clone)]
pub(crate) struct CompletionHeader {
    pub(crate) task_id: TaskId,
    /// Unix time in seconds.
    pub(crate) created: i64,
    /// The model, as the client named it.
    pub(crate) model: String,
}

impl CompletionHeader {
    fn id(&self) -> String {
        format!("chatcmpl-{}", self.task_id)
    }

    /// The whole completion.
    pub(crate) fn whole(&self, text: &str, end: &AnswerEnd) -> Value {
        let content =
            if text.is_empty() && !end.calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if !end.calls.is_empty() {
            message["tool_calls"] = calls_json(&end.calls);
        }
        json!({
            "id": self.id(),
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": reason_name(end.reason),
            }],
            "usage": usage_json(end.usage),
        })
    }

    pub(crate) fn chunk(&self, delta: &Value, reason: Option<FinishReason>) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": reason.map(reason_name),
            }],
        })
    }

    /// The chunk with the token usage.
    pub(crate) fn usage_chunk(&self, usage: Usage) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [],
            "usage": usage_json(usage),
        })
    }
}

fn reason_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
    }
}

/// Tool calls in a message.
pub(crate) fn calls_json(calls: &[ToolCallBlock]) -> Value {
    calls.iter().map(call_json).collect()
}

/// A tool call in a chunk. It is sent whole, because it is durable before any client acts on it.
pub(crate) fn call_delta(index: usize, call: &ToolCallBlock) -> Value {
    let mut delta = call_json(call);
    delta["index"] = json!(index);
    json!({ "tool_calls": [delta] })
}

fn call_json(call: &ToolCallBlock) -> Value {
    let function = json!({ "name": call.name, "arguments": arguments(call) });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// The arguments of a call, as text.
pub(crate) fn arguments(call: &ToolCallBlock) -> &str {
    match &call.arguments {
        ToolArguments::Object(json) => json.as_str(),
        ToolArguments::Malformed(text) => text,
    }
}

fn usage_json(usage: Usage) -> Value {
    let tokens = TokenUsage::from(usage);
    json!({
        "prompt_tokens": tokens.prompt_tokens,
        "completion_tokens": tokens.completion_tokens,
        "total_tokens": tokens.total_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read_tokens.unwrap_or_default() },
    })
}
