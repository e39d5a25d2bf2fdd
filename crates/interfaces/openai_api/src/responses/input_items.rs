//! The items of `input`, read into a conversation.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{InputBlock, ToolArguments};
use antiphon_interface_transport::answer::{
    AnswerError, AssistantPart, CarriedThought, Conversation, ConversationBuilder, OpenCalls,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::chat::openai_messages::{image, text};
use crate::responses::client_tools::{flat_name, freeform_arguments};

/// Longest type of an ignored item in the log, in characters.
const KIND_CHARS_MAX: usize = 64;

/// The conversation of `input`, behind calls that a previous response left open.
pub(crate) fn read(
    input: &Value,
    instructions: Option<String>,
    open: OpenCalls,
) -> Result<Conversation, AnswerError> {
    let mut reader = Reader {
        builder: ConversationBuilder::new("input", open),
        said: Vec::new(),
        said_at: String::new(),
        now: SystemClock.now(),
    };
    if let Some(instructions) = instructions.filter(|text| !text.trim().is_empty()) {
        reader.builder.system(instructions);
    }
    match input {
        Value::String(text) => {
            let now = reader.now;
            reader.builder.user("input", vec![InputBlock::text(text)], now)?;
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                reader.item(&format!("input[{index}]"), item)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(AnswerError::field("input", "expected a text, or a list of items"));
        }
    }
    reader.flush()?;
    reader.builder.end()
}

struct Reader {
    builder: ConversationBuilder,
    /// Consecutive items of the assistant: one answer.
    said: Vec<AssistantPart>,
    said_at: String,
    now: DateTime<Utc>,
}

impl Reader {
    fn item(&mut self, field: &str, item: &Value) -> Result<(), AnswerError> {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => self.message(field, item),
            "reasoning" => self.reasoning(field, item),
            "function_call" => {
                let name = flat_name(item["namespace"].as_str(), required(field, item, "name")?);
                let arguments = item["arguments"].as_str().unwrap_or_default().to_owned();
                self.call(field, item, name, ToolArguments::from_model(arguments))
            }
            "custom_tool_call" => {
                let name = flat_name(item["namespace"].as_str(), required(field, item, "name")?);
                let arguments = freeform_arguments(required(field, item, "input")?);
                self.call(field, item, name, ToolArguments::from_model(arguments))
            }
            "local_shell_call" => {
                let arguments = ToolArguments::from_model(item["action"].to_string());
                self.call(field, item, "local_shell".to_owned(), arguments)
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.flush()?;
                let id = item["call_id"].as_str().or_else(|| item["id"].as_str());
                let Some(id) = id else { return Err(missing(field, "call_id")) };
                let output = &item["output"];
                let output = if output.is_object() { &output["content"] } else { output };
                let content = blocks(&format!("{field}.output"), output)?;
                self.builder.result(field, id, content, false, self.now)
            }
            "compaction" | "compaction_summary" | "context_compaction" => {
                self.compaction(field, item)
            }
            // What only OpenAI's servers run or keep: what they found is in the texts that follow.
            other => {
                let kind: String = other.chars().take(KIND_CHARS_MAX).collect();
                tracing::info!(field, kind, "an item of the input is ignored");
                Ok(())
            }
        }
    }

    fn message(&mut self, field: &str, item: &Value) -> Result<(), AnswerError> {
        let content = blocks(&format!("{field}.content"), &item["content"])?;
        match item["role"].as_str() {
            Some("system" | "developer") => {
                let text = text(field, content)?;
                self.builder.system(text);
                Ok(())
            }
            Some("user") => {
                self.flush()?;
                self.builder.user(field, content, self.now)
            }
            Some("assistant") => {
                let text = text(field, content)?;
                self.say(field, AssistantPart::Text(text));
                Ok(())
            }
            Some(_) | None => {
                let known = "expected `system`, `developer`, `user` or `assistant`";
                Err(AnswerError::field(format!("{field}.role"), known))
            }
        }
    }

    /// Thinking of an earlier answer. Without its encrypted content, or with that of another server, it cannot be sent
    /// to a model, and is left out.
    fn reasoning(&mut self, field: &str, item: &Value) -> Result<(), AnswerError> {
        let Some(sealed) = item["encrypted_content"].as_str() else { return Ok(()) };
        let refuse = |reason| AnswerError::field(format!("{field}.encrypted_content"), reason);
        if let Some(thought) = CarriedThought::from_field(sealed).map_err(refuse)? {
            self.say(field, AssistantPart::Thought(thought));
        }
        Ok(())
    }

    /// A summary of what was before, if it has a text that can be read.
    fn compaction(&mut self, field: &str, item: &Value) -> Result<(), AnswerError> {
        let given = ["summary", "content", "text"].map(|name| &item[name]);
        let Some(given) = given.into_iter().find(|given| !given.is_null()) else {
            tracing::info!(field, "a compaction without a text is ignored");
            return Ok(());
        };
        let summary = text(field, blocks(field, given)?)?;
        if summary.trim().is_empty() {
            return Ok(());
        }
        self.flush()?;
        let summary = format!("Summary of the conversation before:\n{summary}");
        self.builder.user(field, vec![InputBlock::text(summary)], self.now)
    }

    fn call(
        &mut self,
        field: &str,
        item: &Value,
        name: String,
        arguments: ToolArguments,
    ) -> Result<(), AnswerError> {
        let id = item["call_id"].as_str().or_else(|| item["id"].as_str());
        let Some(id) = id else { return Err(missing(field, "call_id")) };
        let call = AssistantPart::call(field, id, name, arguments)?;
        self.say(field, call);
        Ok(())
    }

    fn say(&mut self, field: &str, part: AssistantPart) {
        if self.said.is_empty() {
            field.clone_into(&mut self.said_at);
        }
        self.said.push(part);
    }

    fn flush(&mut self) -> Result<(), AnswerError> {
        let said = std::mem::take(&mut self.said);
        if said.is_empty() {
            return Ok(());
        }
        self.builder.assistant(&self.said_at, said, self.now)
    }
}

fn required<'a>(field: &str, item: &'a Value, name: &str) -> Result<&'a str, AnswerError> {
    item[name].as_str().ok_or_else(|| missing(field, name))
}

fn missing(field: &str, name: &str) -> AnswerError {
    AnswerError::field(format!("{field}.{name}"), "missing, or not a text")
}

/// A text, or a list of parts.
fn blocks(field: &str, content: &Value) -> Result<Vec<InputBlock>, AnswerError> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![InputBlock::text(text)]),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| block(&format!("{field}[{index}]"), part)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(AnswerError::field(field, "expected a text, or a list of parts"))
        }
    }
}

fn block(field: &str, part: &Value) -> Result<InputBlock, AnswerError> {
    let text = |name: &str| {
        let text = part[name].as_str().map(InputBlock::text);
        text.ok_or_else(|| missing(field, name))
    };
    match part["type"].as_str() {
        Some("input_text" | "output_text" | "text" | "summary_text") => text("text"),
        Some("refusal") => text("refusal"),
        Some("input_image") => image(field, part["image_url"].as_str().unwrap_or_default()),
        Some(other) => {
            let message = format!(
                "expected a part of type `input_text`, `output_text` or `input_image`, not `{other}`"
            );
            Err(AnswerError::field(field, message))
        }
        None => Err(missing(field, "type")),
    }
}

/// Messages of the journal as items, for `GET …/input_items`.
pub(crate) fn item(id: &str, message: &antiphon_core::Message) -> Vec<Value> {
    use antiphon_core::{AssistantBlock, Message};
    let part = |block: &InputBlock| match block {
        InputBlock::Text(text) => json!({ "type": "input_text", "text": text.text }),
        InputBlock::Image(image) => {
            json!({ "type": "input_text", "text": format!("[{}]", image.mime_type()) })
        }
    };
    match message {
        Message::User(user) => vec![json!({
            "id": id, "type": "message", "role": "user", "status": "completed",
            "content": user.content.iter().map(part).collect::<Vec<_>>(),
        })],
        Message::ToolResult(result) => {
            let text = |block: &InputBlock| match block {
                InputBlock::Text(text) => text.text.clone(),
                InputBlock::Image(image) => format!("[{}]", image.mime_type()),
            };
            let output: String = result.content.iter().map(text).collect();
            vec![json!({
                "id": id, "type": "function_call_output", "call_id": result.tool_call_id,
                "output": output, "status": "completed",
            })]
        }
        Message::Assistant(answer) => {
            let mut items = Vec::new();
            for (index, block) in answer.content.iter().enumerate() {
                let id = format!("{id}_{index}");
                match block {
                    AssistantBlock::Text(text) => items.push(json!({
                        "id": id, "type": "message", "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": text.text, "annotations": [] }],
                    })),
                    AssistantBlock::ToolCall(call) => items.push(json!({
                        "id": id, "type": "function_call", "call_id": call.id, "name": call.name,
                        "arguments": crate::chat::completion_json::arguments(call),
                        "status": "completed",
                    })),
                    AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => {}
                }
            }
            items
        }
    }
}
