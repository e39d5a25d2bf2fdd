//! A history that every provider accepts.
//!
//! Models refuse a conversation in which a call has no result, or a result no call. A journal
//! may hold such a conversation: an answer that was canceled, a call interrupted by a crash, a
//! history copied up to the middle of a step. [`sendable`] leaves out what cannot be sent; the
//! journal keeps it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{
    AssistantBlock, AssistantMessage, InputBlock, Message, StopReason, ToolCallId,
    ToolResultMessage, UserMessage,
};

/// Text for a tool result without content: some providers refuse an empty result.
const NO_OUTPUT: &str = "(no output)";

/// First block of a message that follows an interrupted answer.
const INTERRUPTED: &str = "[Your answer above was interrupted here, before its end.]";

/// The part of `messages` that may be sent to a model. Afterwards:
///
/// - no answer that broke off (`error`) is left, nor an empty message or blank text;
/// - of an interrupted answer (`aborted`) the text is left if a user message follows directly, and
///   that message begins with a note about it;
/// - each call has exactly one result, and the results of an answer follow it directly, in
///   the order of its calls;
/// - every result belongs to a call, and none is empty.
///
/// Applying it again changes nothing. Unchanged messages are shared,
/// not copied.
pub fn sendable(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut sent = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        match &**message {
            Message::User(user) => {
                let before = index.checked_sub(1).and_then(|before| messages.get(before));
                push_user(message, user, before.and_then(|before| interrupted(before)), &mut sent);
            }
            Message::ToolResult(_) => {}
            Message::Assistant(answer) => match answer.stop_reason {
                // The text of an interrupted one is sent with the user message behind it.
                StopReason::Error | StopReason::Aborted => {}
                StopReason::EndTurn
                | StopReason::Length
                | StopReason::ToolUse
                | StopReason::Unknown => {
                    push_step(message, answer, &messages[index + 1..], &mut sent);
                }
            },
        }
    }
    sent
}

/// Adds a user message and, before it, the answer that it interrupted.
fn push_user(
    message: &Arc<Message>,
    user: &UserMessage,
    interrupted: Option<AssistantMessage>,
    sent: &mut Vec<Arc<Message>>,
) {
    let mut content = without_blank_text(&user.content);
    if content.is_empty() {
        return;
    }
    match interrupted {
        Some(answer) => {
            sent.push(answer.into());
            content.insert(0, InputBlock::text(INTERRUPTED));
        }
        None if content.len() == user.content.len() => return sent.push(Arc::clone(message)),
        None => {}
    }
    sent.push(UserMessage { content, timestamp: user.timestamp }.into());
}

/// The text of an interrupted answer, as an answer of its own.
fn interrupted(message: &Message) -> Option<AssistantMessage> {
    let Message::Assistant(answer) = message else { return None };
    let text =
        |block: &&AssistantBlock| block.as_text().is_some_and(|text| !text.trim().is_empty());
    let content: Vec<AssistantBlock> = answer.content.iter().filter(text).cloned().collect();
    let stop_reason = StopReason::EndTurn;
    (answer.stop_reason == StopReason::Aborted && !content.is_empty()).then(|| AssistantMessage {
        content,
        stop_reason,
        ..answer.clone()
    })
}

/// Adds an answer and, directly after it, the results of its calls. Leaves out a call without a
/// result before the next answer.
fn push_step(
    message: &Arc<Message>,
    answer: &AssistantMessage,
    rest: &[Arc<Message>],
    sent: &mut Vec<Arc<Message>>,
) {
    let mut seen = HashSet::new();
    let mut results = Vec::new();
    let mut kept = Vec::with_capacity(answer.content.len());
    for block in &answer.content {
        if let AssistantBlock::ToolCall(call) = block {
            match result_of(&call.id, rest) {
                Some(result) if seen.insert(&call.id) => results.push(result),
                Some(_) | None => continue,
            }
        }
        if block.as_text().is_none_or(|text| !text.trim().is_empty()) {
            kept.push(block);
        }
    }
    if kept.is_empty() {
        return;
    }
    if kept.len() == answer.content.len() {
        sent.push(Arc::clone(message));
    } else {
        let content = kept.into_iter().cloned().collect();
        sent.push(AssistantMessage { content, ..answer.clone() }.into());
    }
    sent.extend(results.into_iter().map(with_content));
}

/// A result that is not empty.
fn with_content((message, result): (&Arc<Message>, &ToolResultMessage)) -> Arc<Message> {
    if !result.content.is_empty() && result.content.iter().all(is_not_blank) {
        return Arc::clone(message);
    }
    let mut content = without_blank_text(&result.content);
    if content.is_empty() {
        content.push(InputBlock::text(NO_OUTPUT));
    }
    ToolResultMessage { content, ..result.clone() }.into()
}

/// Blocks without blank text, which some providers refuse.
fn without_blank_text(content: &[InputBlock]) -> Vec<InputBlock> {
    content.iter().filter(|block| is_not_blank(block)).cloned().collect()
}

fn is_not_blank(block: &InputBlock) -> bool {
    match block {
        InputBlock::Text(text) => !text.text.trim().is_empty(),
        InputBlock::Image(_) => true,
    }
}

fn result_of<'a>(
    id: &ToolCallId,
    rest: &'a [Arc<Message>],
) -> Option<(&'a Arc<Message>, &'a ToolResultMessage)> {
    let step = rest.iter().take_while(|message| !matches!(&***message, Message::Assistant(_)));
    step.into_iter().find_map(|message| match &**message {
        Message::ToolResult(result) if result.tool_call_id == *id => Some((message, result)),
        Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => None,
    })
}
