//! A conversation as text: a section for each message. Text of models and tools is shown as it is; the terminal escapes it.

use std::fmt::Write as _;
use std::sync::Arc;

use antiphon_core::{AssistantBlock, InputBlock, Message, StopReason, UserMessage};

use crate::display::escaped;

/// A message that waits in the inbox.
pub fn queued(message: &UserMessage) -> String {
    let mut text = String::new();
    section(&mut text, "queued", &inputs(&message.content));
    text
}

/// The messages of a conversation, in order, each below its title.
pub fn conversation(system_prompt: &str, messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    if !system_prompt.is_empty() {
        section(&mut text, "system", system_prompt);
    }
    for message in messages {
        match &**message {
            Message::User(user) => section(&mut text, "user", &inputs(&user.content)),
            Message::Assistant(answer) => {
                let blocks: Vec<String> = answer.content.iter().map(block).collect();
                section(&mut text, answer_title(answer.stop_reason), &blocks.join("\n"));
            }
            Message::ToolResult(result) => {
                let title = if result.is_error { "failed" } else { "result" };
                section(
                    &mut text,
                    &format!("{title} of {}", result.tool_name),
                    &inputs(&result.content),
                );
            }
        }
    }
    text
}

/// The title of an answer, which says whether it is complete.
fn answer_title(stop_reason: StopReason) -> &'static str {
    match stop_reason {
        StopReason::Error => "assistant, broke off",
        StopReason::Aborted => "assistant, interrupted",
        StopReason::EndTurn | StopReason::Length | StopReason::ToolUse | StopReason::Unknown => {
            "assistant"
        }
    }
}

fn section(text: &mut String, title: &str, body: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n── {}\n{}", escaped(title), body.trim_end());
}

fn inputs(blocks: &[InputBlock]) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            InputBlock::Text(text) => text.text.clone(),
            InputBlock::Image(image) => {
                format!("[{}, {} bytes]", image.mime_type(), image.data().len())
            }
        })
        .collect();
    texts.join("\n")
}

fn block(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text(text) => text.text.clone(),
        AssistantBlock::Thinking(thinking) => format!("(thinking) {}", thinking.thinking),
        AssistantBlock::ToolCall(call) => {
            let arguments = call.arguments.object().map_or("(malformed)", |json| json.as_str());
            format!("→ {} {}", escaped(&call.name), escaped(arguments))
        }
        AssistantBlock::Opaque(opaque) => format!("[{}]", escaped(&opaque.kind)),
    }
}
