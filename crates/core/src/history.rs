//! A history that every provider accepts.
//!
//! Models refuse a conversation in which a call has no result, or a result no call. A journal
//! may well hold such a thing: an answer that was canceled, a call cut off by a crash, a
//! history copied up to the middle of a lap. [`sendable`] leaves out what cannot be sent; the
//! journal keeps it.

use std::collections::HashSet;

use crate::{
    AssistantBlock, AssistantMessage, InputBlock, Message, StopReason, ToolCallId,
    ToolResultMessage, UserMessage,
};

/// What a model is told of a tool that said nothing: some providers refuse an empty result.
const NO_OUTPUT: &str = "(no output)";

/// What of `messages` may be sent to a model. Afterwards:
///
/// - no answer that broke off (`error`, `aborted`) is left, nor an empty message or blank text;
/// - each call has exactly one result, and the results of an answer follow it directly, in
///   the order of its calls;
/// - no result stands alone, and none is empty.
///
/// Sending what it returns through it again changes nothing.
pub fn sendable(messages: &[Message]) -> Vec<Message> {
    let mut sent = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::User(user) => {
                let content = spoken(&user.content);
                if !content.is_empty() {
                    sent.push(Message::User(UserMessage { content, timestamp: user.timestamp }));
                }
            }
            Message::ToolResult(_) => {}
            Message::Assistant(answer) => match answer.stop_reason {
                StopReason::Error | StopReason::Aborted => {}
                StopReason::EndTurn
                | StopReason::Length
                | StopReason::ToolUse
                | StopReason::Unknown => {
                    push_lap(answer, &messages[index + 1..], &mut sent);
                }
            },
        }
    }
    sent
}

/// Adds an answer and, right behind it, the results of its calls. A call whose result is
/// nowhere before the next answer is left out.
fn push_lap(answer: &AssistantMessage, rest: &[Message], sent: &mut Vec<Message>) {
    let mut seen = HashSet::new();
    let mut results = Vec::new();
    let mut content = Vec::with_capacity(answer.content.len());
    for block in &answer.content {
        if let AssistantBlock::ToolCall(call) = block {
            match result_of(&call.id, rest) {
                Some(result) if seen.insert(&call.id) => {
                    let mut content = spoken(&result.content);
                    if content.is_empty() {
                        content.push(InputBlock::text(NO_OUTPUT));
                    }
                    let result = ToolResultMessage { content, ..result.clone() };
                    results.push(Message::ToolResult(result));
                }
                Some(_) | None => continue,
            }
        }
        if block.as_text().is_none_or(|text| !text.trim().is_empty()) {
            content.push(block.clone());
        }
    }
    if !content.is_empty() {
        sent.push(Message::Assistant(AssistantMessage { content, ..answer.clone() }));
        sent.append(&mut results);
    }
}

/// Blocks without blank text, which some providers refuse.
fn spoken(content: &[InputBlock]) -> Vec<InputBlock> {
    let said = |block: &&InputBlock| match block {
        InputBlock::Text(text) => !text.text.trim().is_empty(),
        InputBlock::Image(_) => true,
    };
    content.iter().filter(said).cloned().collect()
}

fn result_of<'a>(id: &ToolCallId, rest: &'a [Message]) -> Option<&'a ToolResultMessage> {
    rest.iter().take_while(|message| !matches!(message, Message::Assistant(_))).find_map(
        |message| match message {
            Message::ToolResult(result) if result.tool_call_id == *id => Some(result),
            Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => None,
        },
    )
}
