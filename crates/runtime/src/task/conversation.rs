//! What was said: all of it, and what of it the model still reads.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, InputBlock, Message, StopReason, TokenUsage, ToolArguments, UserMessage,
};

/// Bytes of text that make a token, roughly. Low rather than high: too early is no harm.
const TOKEN_BYTES: u64 = 3;

/// Tokens that an image takes, roughly.
const IMAGE_TOKENS: u64 = 1600;

/// What was said, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    /// How many of them were said before this task.
    inherited: usize,
    compaction: Option<Compaction>,
    /// What the model's last answer says that it read and wrote, and how many messages that were.
    measured: Option<(usize, u64)>,
}

/// What the model reads in place of the older messages.
#[derive(Debug, Clone, PartialEq)]
struct Compaction {
    summary: Arc<Message>,
    kept_from: usize,
}

impl Conversation {
    /// Everything that was said.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// What was said in this task.
    pub fn own(&self) -> &[Arc<Message>] {
        &self.messages[self.inherited..]
    }

    /// The same for the next task: everything was said before it.
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

    /// What the model reads: the same messages lap after lap, with more behind them.
    pub fn view(&self) -> Vec<Arc<Message>> {
        match &self.compaction {
            None => self.messages.clone(),
            Some(Compaction { summary, kept_from }) => {
                let kept = self.messages[*kept_from..].iter();
                [summary].into_iter().chain(kept).map(Arc::clone).collect()
            }
        }
    }

    /// What of it the model reads up to the message at `end`.
    pub(crate) fn view_until(&self, end: usize) -> Vec<Arc<Message>> {
        let mut view = self.view();
        view.truncate(view.len().saturating_sub(self.messages.len().saturating_sub(end)));
        view
    }

    /// The first message that the model still reads as it was.
    pub fn kept_from(&self) -> usize {
        self.compaction.as_ref().map_or(0, |compaction| compaction.kept_from)
    }

    /// What the model has read in place of older messages.
    pub fn summary(&self) -> Option<&Message> {
        self.compaction.as_ref().map(|compaction| &*compaction.summary)
    }

    /// How many tokens the next request has, roughly: what the last answer said, and the rest by
    /// its length.
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

/// How many tokens a message has, roughly.
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
