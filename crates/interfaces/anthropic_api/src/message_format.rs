//! Writes a message: whole, and as server-sent events.

use std::collections::VecDeque;

use antiphon_core::{TaskId, ToolArguments, ToolCallBlock, Usage};
use antiphon_interface_transport::answer::{
    AnswerBlock, AnswerBlocks, AnswerEnd, AnswerError, AnswerFormat, AnswerPart, BlockEvent,
    BlockKind, FinishReason, StreamLine,
};
use axum::response::sse;
use serde_json::{Value, json};

use crate::anthropic_error;

/// Writes a message.
pub(crate) struct MessageFormat {
    pub(crate) task_id: TaskId,
    /// The model, as the client named it.
    model: String,
    blocks: AnswerBlocks,
}

impl MessageFormat {
    pub(crate) fn new(task_id: TaskId, model: String) -> Self {
        Self { task_id, model, blocks: AnswerBlocks::default() }
    }

    fn message(&self, content: Value, usage: Value) -> Value {
        json!({
            "id": format!("msg_{}", self.task_id), "type": "message", "role": "assistant",
            "model": self.model, "content": content, "stop_reason": null, "stop_sequence": null,
            "usage": usage,
        })
    }
}

impl AnswerFormat for MessageFormat {
    fn begin(&mut self, lines: &mut VecDeque<StreamLine>) {
        let message = self.message(json!([]), usage_json(Usage::default()));
        push(lines, "message_start", json!({ "message": message }));
        push(lines, "ping", json!({}));
    }

    fn collect(&mut self, part: &AnswerPart) {
        self.blocks.collect(part);
    }

    fn stream(&mut self, part: AnswerPart, lines: &mut VecDeque<StreamLine>) {
        for event in self.blocks.add(&part) {
            block_lines(event, lines);
        }
        if let AnswerPart::End(end) = part {
            let delta = json!({ "stop_reason": stop_reason(end.reason), "stop_sequence": null });
            let more = json!({ "delta": delta, "usage": usage_json(end.usage) });
            push(lines, "message_delta", more);
            push(lines, "message_stop", json!({}));
        }
    }

    fn whole(&mut self, end: &AnswerEnd) -> Value {
        let content: Value = self.blocks.blocks().map(block_json).collect();
        let mut message = self.message(content, usage_json(end.usage));
        message["stop_reason"] = json!(stop_reason(end.reason));
        message
    }

    fn stream_error(&mut self, error: &AnswerError, lines: &mut VecDeque<StreamLine>) {
        let data = self.error_body(error).to_string();
        lines.push_back(StreamLine { event: Some("error"), data });
    }

    fn error_body(&self, error: &AnswerError) -> Value {
        let mut body = anthropic_error::body(error);
        body["request_id"] = json!(format!("req_{}", self.task_id));
        body
    }

    fn heartbeat(&self) -> Option<sse::Event> {
        Some(sse::Event::default().event("ping").data(r#"{"type":"ping"}"#))
    }
}

fn push(lines: &mut VecDeque<StreamLine>, event: &'static str, mut data: Value) {
    data["type"] = json!(event);
    lines.push_back(StreamLine { event: Some(event), data: data.to_string() });
}

fn block_lines(event: BlockEvent, lines: &mut VecDeque<StreamLine>) {
    let mut start = |index: usize, block: Value| {
        push(lines, "content_block_start", json!({ "index": index, "content_block": block }));
    };
    match event {
        BlockEvent::Begin(index, BlockKind::Text) => {
            start(index, json!({ "type": "text", "text": "" }));
        }
        BlockEvent::Begin(index, BlockKind::Thought) => {
            start(index, json!({ "type": "thinking", "thinking": "", "signature": "" }));
        }
        BlockEvent::Grow(index, BlockKind::Text, text) => {
            delta(lines, index, json!({ "type": "text_delta", "text": text }));
        }
        BlockEvent::Grow(index, BlockKind::Thought, text) => {
            delta(lines, index, json!({ "type": "thinking_delta", "thinking": text }));
        }
        BlockEvent::End(index, block) => {
            match &block {
                AnswerBlock::Text(_) => {}
                AnswerBlock::Thought { carried, .. } => {
                    if let Some(carried) = carried {
                        let signature = json!({ "type": "signature_delta", "signature": carried });
                        delta(lines, index, signature);
                    }
                }
                // A call is sent whole, because it is durable before any client acts on it.
                AnswerBlock::Call(call) => {
                    let mut begun = block_json(&block);
                    begun["input"] = json!({});
                    start(index, begun);
                    let json = arguments(call);
                    delta(
                        lines,
                        index,
                        json!({ "type": "input_json_delta", "partial_json": json }),
                    );
                }
            }
            push(lines, "content_block_stop", json!({ "index": index }));
        }
    }
}

fn delta(lines: &mut VecDeque<StreamLine>, index: usize, delta: Value) {
    push(lines, "content_block_delta", json!({ "index": index, "delta": delta }));
}

fn block_json(block: &AnswerBlock) -> Value {
    match block {
        AnswerBlock::Text(text) => json!({ "type": "text", "text": text }),
        AnswerBlock::Thought { text, carried } => json!({
            "type": "thinking", "thinking": text, "signature": carried.clone().unwrap_or_default(),
        }),
        AnswerBlock::Call(call) => {
            let input: Value = serde_json::from_str(arguments(call)).unwrap_or_else(|_| json!({}));
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }
    }
}

fn arguments(call: &ToolCallBlock) -> &str {
    match &call.arguments {
        ToolArguments::Object(json) => json.as_str(),
        ToolArguments::Malformed(_) => "{}",
    }
}

fn stop_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens.unwrap_or_default(),
        "cache_creation_input_tokens": usage.cache_write_tokens.unwrap_or_default(),
    })
}
