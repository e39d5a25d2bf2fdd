//! Writes a response: whole, and as server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;

use antiphon_core::{TaskId, TokenUsage, ToolCallBlock, Usage};
use antiphon_interface_transport::answer::{
    AnswerBlock, AnswerBlocks, AnswerEnd, AnswerError, AnswerFormat, AnswerPart, BlockEvent,
    BlockKind, FinishReason, StreamLine,
};
use serde_json::{Value, json};

use crate::chat::completion_json::arguments;
use crate::openai_error::{self, Shape};
use crate::responses::client_tools::ClientTools;

/// What a response says of its request.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHeader {
    pub(crate) id: String,
    pub(crate) task_id: TaskId,
    /// Unix time in seconds.
    pub(crate) created: i64,
    /// Fields that are written as they came.
    pub(crate) echoed: Value,
}

/// Writes a response.
pub(crate) struct ResponseFormat {
    pub(crate) header: ResponseHeader,
    pub(crate) tools: Arc<ClientTools>,
    pub(crate) blocks: AnswerBlocks,
    pub(crate) sequence: u64,
}

impl ResponseHeader {
    /// The response, with its status and what is known of it.
    pub(crate) fn body(&self, status: &str, output: Value) -> Value {
        let mut body = json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status,
            "background": false, "error": null, "incomplete_details": null, "output": output,
            "usage": null,
        });
        if let (Some(body), Some(echoed)) = (body.as_object_mut(), self.echoed.as_object()) {
            body.extend(echoed.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        body
    }
}

impl ResponseFormat {
    pub(crate) fn new(header: ResponseHeader, tools: Arc<ClientTools>) -> Self {
        Self { header, tools, blocks: AnswerBlocks::default(), sequence: 0 }
    }

    /// The items of the output that are whole.
    fn output(&self) -> Value {
        self.blocks.blocks().enumerate().map(|(index, block)| self.item(index, block)).collect()
    }

    fn item_id(&self, index: usize) -> String {
        format!("{}_{index}", self.header.task_id)
    }

    fn item(&self, index: usize, block: &AnswerBlock) -> Value {
        let id = self.item_id(index);
        match block {
            AnswerBlock::Text(text) => json!({
                "id": format!("msg_{id}"), "type": "message", "status": "completed",
                "role": "assistant", "content": [text_part(text)],
            }),
            AnswerBlock::Thought { text, carried } => json!({
                "id": format!("rs_{id}"), "type": "reasoning", "summary": summary(text),
                "encrypted_content": carried,
            }),
            AnswerBlock::Call(call) => self.tools.call_item(&id, call),
        }
    }

    fn line(&mut self, event: &'static str, mut data: Value, lines: &mut VecDeque<StreamLine>) {
        data["type"] = json!(event);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        lines.push_back(StreamLine { event: Some(event), data: data.to_string() });
    }

    fn block_event(&mut self, event: BlockEvent, lines: &mut VecDeque<StreamLine>) {
        match event {
            BlockEvent::Begin(index, BlockKind::Text) => {
                let id = format!("msg_{}", self.item_id(index));
                let item = json!({
                    "id": id, "type": "message", "status": "in_progress", "role": "assistant",
                    "content": [],
                });
                let added = json!({ "output_index": index, "item": item });
                self.line("response.output_item.added", added, lines);
                let part = json!({
                    "item_id": id, "output_index": index, "content_index": 0, "part": text_part(""),
                });
                self.line("response.content_part.added", part, lines);
            }
            BlockEvent::Begin(index, BlockKind::Thought) => {
                let id = format!("rs_{}", self.item_id(index));
                let item = json!({ "id": id, "type": "reasoning", "summary": [] });
                let added = json!({ "output_index": index, "item": item });
                self.line("response.output_item.added", added, lines);
            }
            BlockEvent::Grow(index, BlockKind::Text, text) => {
                let id = format!("msg_{}", self.item_id(index));
                let delta = json!({
                    "item_id": id, "output_index": index, "content_index": 0, "delta": text,
                    "logprobs": [],
                });
                self.line("response.output_text.delta", delta, lines);
            }
            BlockEvent::Grow(index, BlockKind::Thought, text) => {
                let id = format!("rs_{}", self.item_id(index));
                let delta = json!({
                    "item_id": id, "output_index": index, "summary_index": 0, "delta": text,
                });
                if self.begins_summary(index) {
                    let part = json!({
                        "item_id": id, "output_index": index, "summary_index": 0,
                        "part": { "type": "summary_text", "text": "" },
                    });
                    self.line("response.reasoning_summary_part.added", part, lines);
                }
                self.line("response.reasoning_summary_text.delta", delta, lines);
            }
            BlockEvent::End(index, block) => self.end_block(index, &block, lines),
        }
    }

    fn end_block(&mut self, index: usize, block: &AnswerBlock, lines: &mut VecDeque<StreamLine>) {
        let item = self.item(index, block);
        let id = item["id"].clone();
        match block {
            AnswerBlock::Text(text) => {
                let done = json!({
                    "item_id": id, "output_index": index, "content_index": 0, "text": text,
                    "logprobs": [],
                });
                self.line("response.output_text.done", done, lines);
                let part = json!({
                    "item_id": id, "output_index": index, "content_index": 0,
                    "part": text_part(text),
                });
                self.line("response.content_part.done", part, lines);
            }
            AnswerBlock::Thought { text, .. } if !text.is_empty() => {
                let place = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
                let mut done = place.clone();
                done["text"] = json!(text);
                self.line("response.reasoning_summary_text.done", done, lines);
                let mut part = place;
                part["part"] = json!({ "type": "summary_text", "text": text });
                self.line("response.reasoning_summary_part.done", part, lines);
            }
            AnswerBlock::Thought { .. } => {}
            AnswerBlock::Call(call) => self.call_lines(index, &item, call, lines),
        }
        let done = json!({ "output_index": index, "item": item });
        self.line("response.output_item.done", done, lines);
    }

    /// A call is sent whole, because it is durable before any client acts on it.
    fn call_lines(
        &mut self,
        index: usize,
        item: &Value,
        call: &ToolCallBlock,
        lines: &mut VecDeque<StreamLine>,
    ) {
        let (field, name, delta, done) = if item["type"] == "custom_tool_call" {
            let events =
                ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done");
            ("input", item["input"].clone(), events.0, events.1)
        } else {
            let events =
                ("response.function_call_arguments.delta", "response.function_call_arguments.done");
            ("arguments", json!(arguments(call)), events.0, events.1)
        };
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun[field] = json!("");
        let added = json!({ "output_index": index, "item": begun });
        self.line("response.output_item.added", added, lines);
        let place = json!({ "item_id": item["id"], "output_index": index });
        let mut more = place.clone();
        more["delta"] = name.clone();
        self.line(delta, more, lines);
        let mut whole = place;
        whole[field] = name;
        whole["name"] = item["name"].clone();
        self.line(done, whole, lines);
    }

    fn begins_summary(&self, index: usize) -> bool {
        self.blocks.is_new(index)
    }
}

impl AnswerFormat for ResponseFormat {
    fn begin(&mut self, lines: &mut VecDeque<StreamLine>) {
        let response = self.header.body("in_progress", json!([]));
        self.line("response.created", json!({ "response": response }), lines);
        self.line("response.in_progress", json!({ "response": response }), lines);
    }

    fn collect(&mut self, part: &AnswerPart) {
        self.blocks.collect(part);
    }

    fn stream(&mut self, part: AnswerPart, lines: &mut VecDeque<StreamLine>) {
        for event in self.blocks.add(&part) {
            self.block_event(event, lines);
        }
        if let AnswerPart::End(end) = part {
            let response = self.whole(&end);
            let event = match end.reason {
                FinishReason::Stop | FinishReason::ToolCalls => "response.completed",
                FinishReason::Length | FinishReason::ContentFilter => "response.incomplete",
            };
            self.line(event, json!({ "response": response }), lines);
        }
    }

    fn whole(&mut self, end: &AnswerEnd) -> Value {
        let (status, reason) = match end.reason {
            FinishReason::Stop | FinishReason::ToolCalls => ("completed", Value::Null),
            FinishReason::Length => ("incomplete", json!({ "reason": "max_output_tokens" })),
            FinishReason::ContentFilter => ("incomplete", json!({ "reason": "content_filter" })),
        };
        let mut body = self.header.body(status, self.output());
        body["incomplete_details"] = reason;
        body["usage"] = usage_json(end.usage);
        body["completed_at"] = json!(end.at.timestamp());
        body
    }

    fn stream_error(&mut self, error: &AnswerError, lines: &mut VecDeque<StreamLine>) {
        let code = error.code.clone().unwrap_or_else(|| "server_error".to_owned());
        let mut response = self.header.body("failed", self.output());
        response["error"] = json!({ "code": code, "message": error.message });
        self.line("response.failed", json!({ "response": response }), lines);
    }

    fn error_body(&self, error: &AnswerError) -> Value {
        openai_error::body(error, Shape::OpenAi)
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary(text: &str) -> Value {
    if text.is_empty() { json!([]) } else { json!([{ "type": "summary_text", "text": text }]) }
}

fn usage_json(usage: Usage) -> Value {
    let tokens = TokenUsage::from(usage);
    json!({
        "input_tokens": tokens.prompt_tokens,
        "input_tokens_details": { "cached_tokens": usage.cache_read_tokens.unwrap_or_default() },
        "output_tokens": tokens.completion_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": tokens.total_tokens,
    })
}
