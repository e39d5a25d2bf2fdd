//! Encoded histories of recent conversations. A request repeats the whole history; only its end is new.
//!
//! A wire encodes a history as the items of a JSON array. The items of settled steps stay in memory: they do
//! not change, whatever follows. The next request encodes the steps after them and copies the rest.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use antiphon_core::{
    AssistantBlock, HistoryConverter, HistoryMark, IdRule, Message, ModelRef, ProviderError, steps,
};
use bytes::Bytes;
use serde::Serialize;

use crate::request_body::RequestBody;
use crate::settled_items::SettledItems;

/// Shorter histories are encoded each time: that costs less than it keeps in memory.
const MESSAGES_MIN: usize = 32;

/// Steps at the end that are encoded each time. A wire may treat the last user turns differently, such as
/// mark them for the provider's cache.
const OPEN_STEPS: usize = 3;

/// Most bytes of encoded histories in memory. The one that was not used for longest goes first.
pub const HISTORY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of a body besides the settled history, as a start.
const BODY_BYTES: usize = 16 * 1024;

/// Memory of a settled message beside its items: its address, and the allocation that keeps that.
const MESSAGE_BYTES: usize = size_of::<Weak<Message>>() + size_of::<Message>() + 16;

/// Most histories in memory.
const HISTORIES_MAX: usize = 256;

/// Whether items are followed by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryPart {
    /// More items follow.
    Inside,
    /// They are the end of the history.
    End,
}

/// Encodes the histories of one provider.
#[derive(Clone, Default)]
pub struct HistoryCache(Arc<Mutex<VecDeque<SettledHistory>>>);

/// The part of a history that does not change any more.
struct SettledHistory {
    /// Its messages, by address: as long as it is known here, an address is not used again. Their content goes with the
    /// conversation.
    messages: Vec<Weak<Message>>,
    converter: HistoryConverter,
    items: SettledItems,
}

/// A history for a model.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// The whole conversation.
    pub messages: &'a [Arc<Message>],
    /// The model that reads it.
    pub model: &'a ModelRef,
    /// Which ids of calls the provider accepts.
    pub ids: IdRule,
}

impl HistoryCache {
    /// The body of a request: the fields of `head`, and as its last field the array `name` with the items of
    /// the history after `first`, which may be empty.
    ///
    /// `encode` adds the items of converted messages, with commas between them. It is called with one or
    /// several parts of the history and gives the same items for either: a part begins with an answer that
    /// has a text or a call, directly after a message of another role.
    pub fn body<H: Serialize>(
        &self,
        head: &H,
        name: &str,
        first: &[u8],
        history: History<'_>,
        mut encode: impl FnMut(&[Arc<Message>], HistoryPart, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<RequestBody, ProviderError> {
        let invalid =
            |error: serde_json::Error| ProviderError::InvalidRequest { message: error.to_string() };
        let History { messages, model, ids } = history;
        let mut settled =
            self.take(messages, model).unwrap_or_else(|| SettledHistory::new(model, ids));
        let mut open = OpenSteps::convert(settled.messages.len(), messages, &mut settled.converter);
        let border = open.border().filter(|_| messages.len() >= MESSAGES_MIN);
        if let Some(border) = border {
            let now_settled: Vec<_> = open.sent.drain(..border.sent).collect();
            let write = |items: &mut Vec<u8>| encode(&now_settled, HistoryPart::Inside, items);
            settled.items.add(write).map_err(invalid)?;
            let known = settled.messages.len();
            let now_known = &messages[known..known + border.messages];
            settled.messages.extend(now_known.iter().map(Arc::downgrade));
        }
        settled.converter.rewind(border.map_or(open.start, |border| border.mark));

        let mut begin = Vec::with_capacity(settled.items.last().len() + BODY_BYTES);
        serde_json::to_writer(&mut begin, head).map_err(invalid)?;
        // Its closing brace.
        begin.pop();
        separate(&mut begin);
        begin.extend_from_slice(format!("\"{name}\":[").as_bytes());
        begin.extend_from_slice(first);
        if !settled.items.is_empty() {
            separate(&mut begin);
        }
        let mut shared: Vec<Bytes> = settled.items.shared().collect();
        // Without a shared part the body is one.
        let mut end = if shared.is_empty() {
            begin
        } else {
            shared.insert(0, begin.into());
            Vec::with_capacity(settled.items.last().len() + BODY_BYTES)
        };
        end.extend_from_slice(settled.items.last());
        if !shared.is_empty() && end.is_empty() {
            end.push(b',');
        }
        separate(&mut end);
        encode(&open.sent, HistoryPart::End, &mut end).map_err(invalid)?;
        if end.last() == Some(&b',') {
            end.pop();
        }
        end.extend_from_slice(b"]}");
        self.keep(settled);
        Ok(RequestBody::of(shared.into_iter().chain([end.into()])))
    }

    /// Takes the longest settled history that these messages begin with.
    fn take(&self, messages: &[Arc<Message>], model: &ModelRef) -> Option<SettledHistory> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = |known: &SettledHistory| {
            let mut pairs = known.messages.iter().zip(messages);
            known.messages.len() <= messages.len()
                && known.converter.model() == model
                && pairs.all(|(one, other)| std::ptr::eq(one.as_ptr(), Arc::as_ptr(other)))
        };
        let fitting = kept.iter().enumerate().filter(|(_, known)| begins(known));
        let (index, _) = fitting.max_by_key(|(_, known)| known.messages.len())?;
        kept.remove(index)
    }

    fn keep(&self, history: SettledHistory) {
        if history.items.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // No request begins with messages that are gone.
        kept.retain(SettledHistory::is_alive);
        kept.push_front(history);
        let mut bytes = 0;
        let fits = |known: &SettledHistory| {
            bytes += known.bytes();
            bytes <= HISTORY_BYTES_MAX
        };
        let fitting = kept.iter().take(HISTORIES_MAX).map(fits).take_while(|fits| *fits).count();
        kept.truncate(fitting);
    }
}

impl SettledHistory {
    fn new(model: &ModelRef, ids: IdRule) -> Self {
        let converter = HistoryConverter::new(model.clone(), ids);
        Self { messages: Vec::new(), converter, items: SettledItems::default() }
    }

    /// Whether its conversation is still in memory.
    fn is_alive(&self) -> bool {
        self.messages.last().is_some_and(|last| last.strong_count() > 0)
    }

    /// Memory that it takes, with what stays of its messages when their conversation is gone.
    fn bytes(&self) -> usize {
        self.items.bytes() + self.messages.len() * MESSAGE_BYTES
    }
}

impl fmt::Debug for HistoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryCache")
    }
}

/// The steps after the settled ones, converted for the model.
struct OpenSteps {
    start: HistoryMark,
    sent: Vec<Arc<Message>>,
    /// Where a step begins that later messages cannot change anything before.
    borders: Vec<Border>,
}

/// The beginning of a step: counted in messages, and in converted messages, after the settled ones.
#[derive(Clone, Copy)]
struct Border {
    messages: usize,
    sent: usize,
    mark: HistoryMark,
}

impl OpenSteps {
    fn convert(
        settled: usize,
        messages: &[Arc<Message>],
        converter: &mut HistoryConverter,
    ) -> Self {
        let start = converter.mark();
        let mut open = Self { start, sent: Vec::new(), borders: Vec::new() };
        let mut count = 0;
        for step in steps(&messages[settled..]) {
            let (mark, before) = (converter.mark(), open.sent.len());
            open.sent.extend(converter.convert(step));
            let answers = open.sent.get(before).is_some_and(|message| is_plain_answer(message));
            let is_after_input =
                before > 0 && !matches!(*open.sent[before - 1], Message::Assistant(_));
            if answers && is_after_input {
                open.borders.push(Border { messages: count, sent: before, mark });
            }
            count += step.len();
        }
        open
    }

    /// Up to where the steps are settled.
    fn border(&self) -> Option<Border> {
        self.borders
            .len()
            .checked_sub(OPEN_STEPS)
            .and_then(|index| self.borders.get(index).copied())
    }
}

/// Whether every wire has an item for this answer.
fn is_plain_answer(message: &Message) -> bool {
    let Message::Assistant(answer) = message else { return false };
    answer.content.iter().any(|block| match block {
        AssistantBlock::Text(text) => !text.text.trim().is_empty(),
        AssistantBlock::ToolCall(_) => true,
        AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => false,
    })
}

/// Adds a comma before what follows, unless nothing came before it.
fn separate(json: &mut Vec<u8>) {
    if !matches!(json.last(), None | Some(b',' | b'[' | b'{')) {
        json.push(b',');
    }
}

/// Adds the items of a list to `items`, with commas between them.
pub fn write_items<T: Serialize>(list: &[T], items: &mut Vec<u8>) -> serde_json::Result<()> {
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            items.push(b',');
        }
        serde_json::to_writer(&mut *items, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use antiphon_core::{AssistantMessage, StopReason, Usage, UserMessage};
    use chrono::DateTime;

    use super::*;

    /// Questions and answers in turn.
    fn conversation(turns: usize, text: &str) -> Vec<Arc<Message>> {
        let turn = |_| {
            let answer = AssistantMessage {
                content: vec![AssistantBlock::text(text)],
                stop_reason: StopReason::EndTurn,
                raw_stop_reason: String::new(),
                usage: Usage::default(),
                model: None,
                timestamp: DateTime::UNIX_EPOCH,
            };
            [UserMessage::text(text, DateTime::UNIX_EPOCH).into(), answer.into()]
        };
        (0..turns).flat_map(turn).collect()
    }

    /// Number of messages that are encoded for a request with these messages.
    fn encoded(cache: &HistoryCache, messages: &[Arc<Message>]) -> usize {
        let model = ModelRef::parse("wire/m").unwrap();
        let history = History { messages, model: &model, ids: IdRule::Any };
        let mut count = 0;
        let body =
            cache.body(&serde_json::json!({}), "items", b"", history, |messages, _, items| {
                count += messages.len();
                write_items(messages, items)
            });
        assert!(!body.unwrap().is_empty());
        count
    }

    #[test]
    fn a_request_encodes_the_end_of_its_history() {
        let cache = HistoryCache::default();
        let messages = conversation(2000, "x");
        assert_eq!(encoded(&cache, &messages[..20]), 20, "a short one is not kept");
        assert_eq!(encoded(&cache, &messages[..20]), 20);
        let mut costs = Vec::new();
        for count in (40..messages.len()).step_by(2) {
            costs.push(encoded(&cache, &messages[..=count]));
        }
        assert!(costs[1..].iter().all(|cost| *cost <= 10), "{costs:?}");
        // The same beginning with another end, as after a fork; and another conversation.
        let fork = [&messages[..100], &conversation(3, "y")].concat();
        assert_eq!(encoded(&cache, &fork), fork.len());
        assert!(encoded(&cache, &messages) <= 10);
    }

    #[test]
    fn a_request_shares_its_beginning_with_the_one_before_and_copies_the_same_however_long_it_is() {
        let cache = HistoryCache::default();
        let messages = conversation(400, &"x".repeat(2_000));
        let model = ModelRef::parse("wire/m").unwrap();
        let body = |count: usize| {
            let history = History { messages: &messages[..count], model: &model, ids: IdRule::Any };
            let head = serde_json::json!({});
            let body = cache.body(&head, "items", b"", history, |messages, _, items| {
                write_items(messages, items)
            });
            body.unwrap()
        };
        body(200);
        for count in [202, 400, 798, 800] {
            let (before, after) = (body(count - 2), body(count));
            let (before, after) = (before.parts(), after.parts());
            let shared = |part: &&Bytes| before.iter().any(|it| it.as_ptr() == part.as_ptr());
            let copied: usize = after.iter().filter(|part| !shared(part)).map(Bytes::len).sum();
            assert!(copied < 3 * 64 * 1024, "{copied} bytes of {count} messages");
        }
    }

    #[test]
    fn the_histories_in_memory_are_bounded() {
        let cache = HistoryCache::default();
        let long = "x".repeat(HISTORY_BYTES_MAX / 50);
        let conversations: Vec<_> = (0..3).map(|_| conversation(20, &long)).collect();
        for messages in &conversations {
            assert_eq!(encoded(&cache, messages), messages.len());
        }
        assert!(encoded(&cache, &conversations[2]) < 10);
        assert_eq!(encoded(&cache, &conversations[0]), 40, "it was not used for longest");
        let bytes = |cache: &HistoryCache| -> usize {
            cache.0.lock().unwrap().iter().map(SettledHistory::bytes).sum()
        };
        assert!(bytes(&cache) <= HISTORY_BYTES_MAX);

        let short: Vec<_> = (0..2 * HISTORIES_MAX).map(|_| conversation(20, "x")).collect();
        for messages in &short {
            encoded(&cache, messages);
        }
        assert_eq!(cache.0.lock().unwrap().len(), HISTORIES_MAX);
    }

    #[test]
    fn a_history_goes_with_its_conversation_and_keeps_no_message() {
        let cache = HistoryCache::default();
        let gone = conversation(20, "x");
        encoded(&cache, &gone);
        assert!(gone.iter().all(|message| Arc::strong_count(message) == 1));
        drop(gone);
        let other = conversation(20, "y");
        encoded(&cache, &other);
        assert_eq!(cache.0.lock().unwrap().len(), 1);
        assert!(encoded(&cache, &other) < 10);
    }
}
