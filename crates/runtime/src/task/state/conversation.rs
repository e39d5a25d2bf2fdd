//! The messages of a conversation, and which of them the model still reads.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, InputBlock, Message, StopReason, TokenUsage, ToolArguments, UserMessage,
};

/// Bytes of text per token, as a low estimate: compacting early does no harm.
const TOKEN_BYTES: u64 = 3;

/// Tokens of an image, roughly.
const IMAGE_TOKENS: u64 = 1600;

/// The messages of a conversation, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    /// Number of messages from tasks before this one.
    inherited: usize,
    compaction: Option<Compaction>,
    /// Number of messages and tokens that the last answer's usage covers.
    measured: Option<(usize, u64)>,
}

/// The summary that replaces the older messages.
#[derive(Debug, Clone, PartialEq)]
struct Compaction {
    summary: Arc<Message>,
    kept_from: usize,
}

impl Conversation {
    /// All messages.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The messages of this task.
    pub fn own(&self) -> &[Arc<Message>] {
        &self.messages[self.inherited..]
    }

    /// The same messages as the history of the next task.
    pub(crate) fn inherited(mut self) -> Self {
        self.inherited = self.messages.len();
        self
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        if let Message::Assistant(answer) = &*message
            && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        {
            let tokens = u64::from(TokenUsage::from(answer.usage).total_tokens);
            self.measured = (tokens > 0).then_some((self.messages.len() + 1, tokens));
        }
        self.messages.push(message);
    }

    pub(crate) fn compact(&mut self, summary: &str, kept_from: u64) {
        let kept_from = usize::try_from(kept_from).unwrap_or(usize::MAX).min(self.messages.len());
        let at = self.messages.last().map_or_else(Default::default, |last| last.timestamp());
        let summary = Arc::new(UserMessage::text(summary, at).into());
        self.compaction = Some(Compaction { summary, kept_from });
        self.measured = None;
    }

    /// The messages the model reads. Each step only adds messages at the end.
    pub fn view(&self) -> Vec<Arc<Message>> {
        match &self.compaction {
            None => self.messages.clone(),
            Some(Compaction { summary, kept_from }) => {
                let kept = self.messages[*kept_from..].iter();
                [summary].into_iter().chain(kept).map(Arc::clone).collect()
            }
        }
    }

    /// The part of the view before the message at index `end`.
    pub(crate) fn view_until(&self, end: usize) -> Vec<Arc<Message>> {
        let mut view = self.view();
        view.truncate(view.len().saturating_sub(self.messages.len().saturating_sub(end)));
        view
    }

    /// Index of the first message that the model reads unchanged.
    pub fn kept_from(&self) -> usize {
        self.compaction.as_ref().map_or(0, |compaction| compaction.kept_from)
    }

    /// The summary that the model reads in place of older messages.
    pub fn summary(&self) -> Option<&Message> {
        self.compaction.as_ref().map(|compaction| &*compaction.summary)
    }

    /// Estimated tokens of the next request: the usage of the last answer, and the messages after it
    /// by their length.
    pub fn tokens(&self) -> u64 {
        let (counted, known) = self.measured.unwrap_or((self.kept_from(), 0));
        let unknown = self.messages[counted..].iter().map(|message| tokens(message)).sum::<u64>();
        let summary = match (&self.compaction, self.measured) {
            (Some(compaction), None) => tokens(&compaction.summary),
            (Some(_) | None, _) => 0,
        };
        known + unknown + summary
    }
}

/// Estimated tokens of a message.
pub(crate) fn tokens(message: &Message) -> u64 {
    let text = |bytes: usize| bytes as u64 / TOKEN_BYTES + 8;
    let input = |block: &InputBlock| match block {
        InputBlock::Text(block) => text(block.text.len()),
        InputBlock::Image(_) => IMAGE_TOKENS,
    };
    match message {
        Message::User(user) => user.content.iter().map(input).sum(),
        Message::ToolResult(result) => result.content.iter().map(input).sum(),
        Message::Assistant(answer) => {
            let block = |block: &AssistantBlock| match block {
                AssistantBlock::Text(block) => text(block.text.len()),
                AssistantBlock::Thinking(block) => text(block.thinking.len()),
                AssistantBlock::ToolCall(call) => match &call.arguments {
                    ToolArguments::Object(json) => text(json.as_str().len()),
                    ToolArguments::Malformed(json) => text(json.len()),
                },
                AssistantBlock::Opaque(block) => text(block.value.as_str().len()),
            };
            answer.content.iter().map(block).sum()
        }
    }
}
