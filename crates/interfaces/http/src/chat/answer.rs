//! An answer in OpenAI's shape: whole, and in chunks.

use antiphon_core::{TaskId, TokenUsage, ToolArguments, ToolCallBlock, Usage};
use serde_json::{Value, json};

use super::watch::{Ending, Reason};

/// What stands in front of every answer, and of every chunk of one.
#[derive(Debug, Clone)]
pub(crate) struct Letterhead {
    pub(crate) task_id: TaskId,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// Who answers, as the client calls it.
    pub(crate) model: String,
}

impl Letterhead {
    fn id(&self) -> String {
        format!("chatcmpl-{}", self.task_id)
    }

    /// The whole answer.
    pub(crate) fn whole(&self, text: &str, ending: &Ending) -> Value {
        let content =
            if text.is_empty() && !ending.calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if !ending.calls.is_empty() {
            message["tool_calls"] = calls_json(&ending.calls);
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
                "finish_reason": ending.reason.as_str(),
            }],
            "usage": usage_json(ending.usage),
        })
    }

    /// One chunk.
    pub(crate) fn chunk(&self, delta: &Value, reason: Option<Reason>) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": reason.map(Reason::as_str),
            }],
        })
    }

    /// The chunk that says what it took.
    pub(crate) fn bill(&self, usage: Usage) -> Value {
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

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// Calls as a message has them.
pub(crate) fn calls_json(calls: &[ToolCallBlock]) -> Value {
    calls.iter().map(call_json).collect()
}

/// A call as a chunk has it: all of it, because the journal has it before anybody acts on it.
pub(crate) fn call_delta(index: usize, call: &ToolCallBlock) -> Value {
    let mut delta = call_json(call);
    delta["index"] = json!(index);
    json!({ "tool_calls": [delta] })
}

fn call_json(call: &ToolCallBlock) -> Value {
    let arguments = match &call.arguments {
        ToolArguments::Object(json) => json.as_str(),
        ToolArguments::Malformed(text) => text,
    };
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
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
