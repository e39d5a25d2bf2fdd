//! The messages of a conversation, and which of them the model still reads.

use std::sync::Arc;

use antiphon_core::port::History;
use antiphon_core::{
    AssistantBlock, EventBody, InputBlock, Message, MessageList, TokenUsage, ToolArguments,
    UserMessage,
};

/// Bytes of text per token, as a low estimate: compacting early does no harm.
const TOKEN_BYTES: u64 = 3;

/// Tokens of an image, roughly.
const IMAGE_TOKENS: u64 = 1600;

/// Bytes of a message beside its content, roughly.
const MESSAGE_BYTES: usize = 256;

/// The messages of a conversation, in order. The oldest ones may be left out when a summary replaces them. Indexes count
/// from 0 over the whole conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    messages: MessageList,
    /// Index of the first message here: those before it are not in memory.
    first: usize,
    /// Number of messages from tasks before this one.
    inherited: usize,
    compaction: Option<Compaction>,
    /// Number of messages and tokens that the last answer's usage covers.
    measured: Option<(usize, u64)>,
    /// Memory of the messages, roughly.
    bytes: usize,
    /// Whether the last of the messages that are not in memory waits for an answer of the model.
    absent_is_in_turn: bool,
}

/// The summary that replaces the older messages.
#[derive(Debug, Clone, PartialEq)]
struct Compaction {
    summary: Arc<Message>,
    kept_from: usize,
    /// The summary and the messages after it.
    view: MessageList,
}

impl Conversation {
    /// The conversation that a journal returned.
    pub(crate) fn of(history: History) -> Self {
        let first = usize::try_from(history.first).unwrap_or(usize::MAX);
        let mut conversation = Self { first, ..Self::default() };
        for event in history.events {
            if let EventBody::MessageAppended(appended) = event.body {
                conversation.push(appended.message);
            } else if let EventBody::Compacted(compacted) = event.body {
                conversation.compact(&compacted.summary, compacted.kept_from);
            }
        }
        conversation
    }

    /// A conversation of which no message is in memory.
    pub(crate) fn absent(messages: usize, inherited: usize, is_in_turn: bool) -> Self {
        Self { first: messages, inherited, absent_is_in_turn: is_in_turn, ..Self::default() }
    }

    /// Whether the model has not answered the last message of this task.
    pub(crate) fn is_in_turn(&self) -> bool {
        match self.own().last().map(|message| &**message) {
            Some(Message::User(_) | Message::ToolResult(_)) => true,
            Some(Message::Assistant(_)) => false,
            None => self.absent_is_in_turn,
        }
    }

    /// The messages, all of them unless a summary replaces the oldest ones.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Number of messages of the whole conversation.
    pub(crate) fn len(&self) -> usize {
        self.first + self.messages.len()
    }

    /// Index of the first message in memory.
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// Memory of the messages, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The messages of this task.
    pub fn own(&self) -> &[Arc<Message>] {
        let inherited = self.inherited.saturating_sub(self.first);
        self.messages.get(inherited..).unwrap_or_default()
    }

    /// The same messages as the history of the next task.
    pub(crate) fn inherited(mut self) -> Self {
        self.inherited = self.len();
        self
    }

    /// The same conversation in a task that has inherited its first `messages` ones.
    pub(crate) fn with_inherited(self, messages: usize) -> Self {
        Self { inherited: messages.min(self.len()), ..self }
    }

    /// Number of messages from tasks before this one.
    pub(crate) fn inherited_messages(&self) -> usize {
        self.inherited
    }

    /// The conversation when it had that many messages, to be continued with the events behind them. `None` when those are
    /// not in memory.
    pub(crate) fn until(mut self, messages: usize) -> Option<Self> {
        let count = messages.checked_sub(self.first).filter(|count| *count > 0)?;
        if count > self.messages.len() {
            return None;
        }
        self.bytes -= self.messages[count..].iter().map(|message| bytes(message)).sum::<usize>();
        self.messages.truncate(count);
        if let Some(compaction) = &mut self.compaction {
            compaction.view.truncate(1 + messages.saturating_sub(compaction.kept_from));
        }
        self.measured.take_if(|(counted, _)| *counted > messages);
        Some(self)
    }

    /// Leaves out the oldest messages that neither the model nor the task reads any more: the same part stays as a journal
    /// returns for [`HistoryExtent::Recent`](antiphon_core::port::HistoryExtent).
    pub(crate) fn without_summarized(mut self) -> Self {
        let Some(compaction) = &self.compaction else { return self };
        let last = |wanted: fn(&Message) -> bool| self.messages.iter().rposition(|it| wanted(it));
        let request = last(|message| matches!(message, Message::User(_)));
        let answer =
            last(|message| matches!(message, Message::Assistant(answer) if answer.is_complete()));
        let (Some(request), Some(answer)) = (request, answer) else { return self };
        let kept = compaction.kept_from.saturating_sub(self.first);
        let gone = kept.min(request).min(answer);
        self.bytes -= self.messages[..gone].iter().map(|message| bytes(message)).sum::<usize>();
        self.messages.remove_first(gone);
        self.first += gone;
        self
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        if let Message::Assistant(answer) = &*message
            && answer.is_complete()
        {
            let tokens = u64::from(TokenUsage::from(answer.usage).total_tokens);
            self.measured = (tokens > 0).then_some((self.len() + 1, tokens));
        }
        self.bytes += bytes(&message);
        if let Some(compaction) = &mut self.compaction {
            compaction.view.push(Arc::clone(&message));
        }
        self.messages.push(message);
    }

    pub(crate) fn compact(&mut self, summary: &str, kept_from: u64) {
        let kept_from = usize::try_from(kept_from).unwrap_or(usize::MAX);
        let kept_from = kept_from.clamp(self.first, self.len());
        let at = self.messages.last().map_or_else(Default::default, |last| last.timestamp());
        let summary = Arc::new(UserMessage::text(summary, at).into());
        let kept = self.messages[kept_from - self.first..].iter();
        let view = [&summary].into_iter().chain(kept).map(Arc::clone).collect();
        self.compaction = Some(Compaction { summary, kept_from, view });
        self.measured = None;
    }

    /// The messages the model reads. Each step only adds messages at the end. A request shares them: it costs the same
    /// however many they are.
    pub fn view(&self) -> MessageList {
        match &self.compaction {
            None => self.messages.clone(),
            Some(compaction) => compaction.view.clone(),
        }
    }

    /// The part of the view before the message at index `end`.
    pub(crate) fn view_until(&self, end: usize) -> MessageList {
        let mut view = self.view();
        view.truncate(view.len().saturating_sub(self.len().saturating_sub(end)));
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
        let counted = counted.saturating_sub(self.first);
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
    blocks(message, |bytes| bytes as u64 / TOKEN_BYTES + 8, |_| IMAGE_TOKENS)
}

/// Memory of a message, roughly.
pub(crate) fn bytes(message: &Message) -> usize {
    let content = blocks(message, |bytes| bytes as u64, |bytes| bytes as u64);
    MESSAGE_BYTES + usize::try_from(content).unwrap_or(usize::MAX)
}

/// Sums up the blocks of a message, by the bytes of texts and of images.
fn blocks(message: &Message, text: fn(usize) -> u64, image: fn(usize) -> u64) -> u64 {
    let input = |block: &InputBlock| match block {
        InputBlock::Text(block) => text(block.text.len()),
        InputBlock::Image(block) => image(block.data().len()),
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
