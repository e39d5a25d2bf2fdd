//! Shortens a conversation before it overflows the model's window.
//!
//! The model writes a summary, which replaces the older messages in later requests. The last steps
//! stay as they are, a call stays with its result, and the current request of the user stays word for
//! word. The journal keeps everything.

use antiphon_core::{
    Compacted, InputBlock, Message, ProviderError, Purpose, StreamError, TaskAccess, ToolChoice,
    Usage, UserMessage,
};

use crate::orchestrator_error::OrchestratorError;
use crate::task::state::TaskState;
use crate::task::state::conversation::tokens;
use crate::task::step::TaskRun;
use crate::task::step::ask_model::{FailedAnswer, Visibility};
use crate::task::step::flush::FlushOutcome;

/// Share of the model's window, in percent, at which the conversation is compacted.
const WINDOW_PERCENT_MAX: u64 = 80;

/// Share of the window, in percent, that the remaining messages may take.
const KEPT_PERCENT_MAX: u64 = 25;

/// Tokens that may remain when the window size is unknown.
const KEPT_TOKENS_DEFAULT: u64 = 8_000;

/// Longest user request that is kept word for word, in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The instruction for the summary.
const INSTRUCTION: &str = "\
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

impl TaskRun {
    /// Has the model summarize the older part of the conversation. When that part is too long even for
    /// a summary, it is left out: a conversation that does not fit cannot continue.
    pub(crate) async fn compact(&mut self, tokens_max: u64) -> Result<(), OrchestratorError> {
        let Some(kept_from) = first_kept(&self.state, tokens_max) else { return Ok(()) };
        if self.services.budget.model_refusal(&self.state.created).is_some() {
            // The next decision suspends the task.
            return Ok(());
        }
        // What the model summarizes is durable before the model reads it.
        if self.flush().await? != FlushOutcome::Written {
            return Ok(());
        }
        let now = self.services.deps.clock.now();
        let mut request = self.request();
        // Messages that stay need no summary.
        request.messages = self.state.conversation.view_until(kept_from);
        request.messages.push(UserMessage::text(INSTRUCTION, now).into());
        request.tool_choice = ToolChoice::None;
        let summary = match self.stream_answer(request, Visibility::Hidden).await {
            Ok(answer) => {
                self.record_usage(answer.model.as_ref(), answer.usage, Some(Purpose::Compaction));
                answer.text()
            }
            Err(FailedAnswer { partial, error: StreamError::Canceled, .. }) => {
                let paid = partial.filter(|partial| partial.usage != Usage::default());
                if let Some(partial) = paid {
                    self.record_usage(
                        partial.model.as_ref(),
                        partial.usage,
                        Some(Purpose::Compaction),
                    );
                }
                return Ok(());
            }
            // Too long for a summary as well: the older messages are left out.
            Err(FailedAnswer {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) => String::new(),
            Err(failed) => {
                self.model_failed(failed, Purpose::Compaction);
                return Ok(());
            }
        };
        let summary =
            if summary.trim().is_empty() { without_summary(&self.state) } else { summary };
        let summary = replacement(&self.state, kept_from, &summary);
        self.push(Compacted { summary, kept_from: kept_from as u64 });
        Ok(())
    }

    /// Tokens that may remain after the model refused the whole conversation as too long.
    pub(super) fn reduced_tokens_max(&self) -> u64 {
        reduced_tokens_max(&self.state, self.window_tokens())
    }
}

/// Whether the conversation is too long for the window of its model, or the task is there to shorten it, and it can be
/// shortened.
pub(crate) fn is_due(state: &TaskState, window_tokens: Option<u64>) -> bool {
    if state.created.access == TaskAccess::CompactOnly {
        return first_kept(state, 0).is_some();
    }
    let tokens_max = window_tokens.map(|window| window / 100 * WINDOW_PERCENT_MAX);
    tokens_max.is_some_and(|tokens_max| state.conversation.tokens() > tokens_max)
        && first_kept(state, kept_tokens_max(window_tokens)).is_some()
}

/// Tokens of messages that may remain in this task.
pub(super) fn tokens_max(state: &TaskState, window_tokens: Option<u64>) -> u64 {
    match state.created.access {
        // What the user asked for last is answered, and belongs into the summary.
        TaskAccess::CompactOnly => 0,
        TaskAccess::Permitted | TaskAccess::PlanFirst | TaskAccess::ReadOnly => {
            kept_tokens_max(window_tokens)
        }
    }
}

/// The summary that a task ends with that only shortens a conversation.
pub(crate) fn summary(state: &TaskState) -> String {
    match state.conversation.summary() {
        Some(Message::User(summary)) => text_of(summary),
        Some(Message::Assistant(_) | Message::ToolResult(_)) | None => String::new(),
    }
}

/// Tokens of messages that may remain for this window size.
pub(crate) fn kept_tokens_max(window_tokens: Option<u64>) -> u64 {
    window_tokens.map_or(KEPT_TOKENS_DEFAULT, |window| window / 100 * KEPT_PERCENT_MAX)
}

/// Tokens that may remain after the model refused the whole conversation as too long: less than
/// half of it, for every window size.
fn reduced_tokens_max(state: &TaskState, window_tokens: Option<u64>) -> u64 {
    kept_tokens_max(window_tokens).min(state.conversation.tokens() / 3)
}

/// Index of the first message that stays, so that the remaining messages have at most
/// `tokens_max` tokens. `None` when nothing would be saved.
pub(crate) fn first_kept(state: &TaskState, tokens_max: u64) -> Option<usize> {
    let messages = state.messages();
    let (mut kept, mut first) = (0, state.conversation.len());
    for (index, message) in messages.iter().enumerate().rev() {
        kept += tokens(message);
        if kept > tokens_max {
            break;
        }
        // A result stays with its call.
        if !matches!(&**message, Message::ToolResult(_)) {
            first = state.conversation.first() + index;
        }
    }
    (first > state.conversation.kept_from() + 1).then_some(first)
}

/// The text that replaces all messages before the first that stays.
fn replacement(state: &TaskState, first_kept: usize, summary: &str) -> String {
    let mut text = format!("[What was said before, in short]\n\n{}", summary.trim());
    if let Some((index, request)) = state.last_request()
        && index < first_kept
        && state.created.access != TaskAccess::CompactOnly
    {
        text.push_str("\n\n[The last request, word for word]\n\n");
        text.push_str(&text_of(request));
    }
    text
}

/// The replacement when there is no summary: the previous summary and a note.
fn without_summary(state: &TaskState) -> String {
    let before = summary(state);
    format!(
        "The older part of the conversation was left out because it no longer fitted.\n{before}"
    )
}

/// The text of a message, bounded.
fn text_of(message: &UserMessage) -> String {
    let mut text: String = message
        .content
        .iter()
        .filter_map(|block| match block {
            InputBlock::Text(text) => Some(text.text.as_str()),
            InputBlock::Image(_) => None,
        })
        .collect::<Vec<_>>()
        .join("\n");
    if text.len() > REQUEST_BYTES_MAX {
        let end = text.floor_char_boundary(REQUEST_BYTES_MAX);
        text.truncate(end);
        text.push_str(" […]");
    }
    text
}
