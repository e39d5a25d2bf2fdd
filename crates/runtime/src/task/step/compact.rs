//! Shortens a conversation before it overflows the model's window.
//!
//! The model writes a summary, which replaces the older messages in later requests. The last steps
//! stay as they are, a call stays with its result, and the current request of the user stays word for
//! word. The journal keeps everything.

use antiphon_core::{InputBlock, Message, UserMessage};

use crate::task::state::TaskState;
use crate::task::state::conversation::tokens;

/// Share of the window, in percent, that the remaining messages may take.
const KEPT_PERCENT_MAX: u64 = 25;

/// Tokens that may remain when the window size is unknown.
const KEPT_TOKENS_DEFAULT: u64 = 8_000;

/// Longest user request that is kept word for word, in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The instruction for the summary.
pub(crate) const INSTRUCTION: &str = "\
The conversation is about to be shortened. Write down what is needed to go on without it, and \
nothing else. Do not call tools and do not continue the work now. Use these headings:

## Goal
What was asked for, with every requirement and preference that was stated.
## Plan
The running plan, step by step: what is done, what is being done, what is left.
## Facts
What was found out: files, names, commands, figures, errors, decisions and their reasons, exactly.
## Open
Questions and problems that are not settled.";

/// Tokens of messages that may remain for this window size.
pub(crate) fn room(window_tokens: Option<u64>) -> u64 {
    window_tokens.map_or(KEPT_TOKENS_DEFAULT, |window| window / 100 * KEPT_PERCENT_MAX)
}

/// Tokens that may remain after the model refused the whole conversation as too long: less than
/// half of it, for every window size.
pub(crate) fn less_room(state: &TaskState, window_tokens: Option<u64>) -> u64 {
    room(window_tokens).min(state.conversation.tokens() / 3)
}

/// Index of the first message that stays, so that the remaining messages have at most `room`
/// tokens. `None` when nothing would be saved.
pub(crate) fn cut(state: &TaskState, room: u64) -> Option<usize> {
    let messages = state.messages();
    let (mut kept, mut cut) = (0, messages.len());
    for (index, message) in messages.iter().enumerate().rev() {
        kept += tokens(message);
        if kept > room {
            break;
        }
        // A result stays with its call.
        if !matches!(&**message, Message::ToolResult(_)) {
            cut = index;
        }
    }
    (cut > state.conversation.kept_from() + 1).then_some(cut)
}

/// The text that replaces all messages before `cut`.
pub(crate) fn replacement(state: &TaskState, cut: usize, summary: &str) -> String {
    let mut text = format!("[What was said before, in short]\n\n{}", summary.trim());
    if let Some((index, request)) = state.last_request()
        && index < cut
    {
        text.push_str("\n\n[The last request, word for word]\n\n");
        text.push_str(&said(request));
    }
    text
}

/// The replacement when there is no summary: the previous summary and a note.
pub(crate) fn without_summary(state: &TaskState) -> String {
    let before = match state.conversation.summary() {
        Some(Message::User(user)) => said(user),
        Some(Message::Assistant(_) | Message::ToolResult(_)) | None => String::new(),
    };
    format!(
        "The older part of the conversation was left out because it no longer fitted.\n{before}"
    )
}

fn said(message: &UserMessage) -> String {
    let mut said: String = message
        .content
        .iter()
        .filter_map(|block| match block {
            InputBlock::Text(text) => Some(text.text.as_str()),
            InputBlock::Image(_) => None,
        })
        .collect::<Vec<_>>()
        .join("\n");
    if said.len() > REQUEST_BYTES_MAX {
        let end = said.floor_char_boundary(REQUEST_BYTES_MAX);
        said.truncate(end);
        said.push_str(" […]");
    }
    said
}
