//! Conversations of tasks that ended or came to rest a short while ago, so that the next task of a session and the next message to
//! a long-lived agent read none of them. A missing entry costs a read, nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{HistoryRef, Seq, TaskId};
use tokio::time::Instant;

use crate::byte_lru::ByteLru;
use crate::task::state::conversation::Conversation;

/// Maximum memory of the conversations, in bytes. When one more does not fit, those that were not used for the longest time
/// are dropped.
const CONVERSATIONS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long a conversation is kept after its last use.
const UNUSED_MAX: Duration = Duration::from_mins(10);

/// Conversations by the last task of each.
#[derive(Debug)]
pub(crate) struct ConversationCache(Mutex<ByteLru<TaskId, Entry>>);

#[derive(Debug)]
struct Entry {
    /// Seq of the last event that the conversation covers.
    seq: Seq,
    conversation: Conversation,
    used_at: Instant,
}

impl Default for ConversationCache {
    fn default() -> Self {
        Self(Mutex::new(ByteLru::new(CONVERSATIONS_BYTES_MAX)))
    }
}

impl ConversationCache {
    fn entries(&self) -> MutexGuard<'_, ByteLru<TaskId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recent part of a conversation up to an event.
    pub(crate) fn find(&self, until: &HistoryRef) -> Option<Conversation> {
        self.find_where(&until.task_id, |entry| {
            (entry.seq == until.seq).then(|| entry.conversation.clone())
        })
    }

    /// The conversation of a task up to an event, when it had that many messages. The one that is here may go further.
    pub(crate) fn beginning(
        &self,
        task_id: &TaskId,
        (seq, messages): (Seq, usize),
    ) -> Option<Conversation> {
        self.find_where(task_id, |entry| {
            let covers = entry.seq >= seq;
            covers.then(|| entry.conversation.clone())?.until(messages)
        })
    }

    fn find_where(
        &self,
        task_id: &TaskId,
        take: impl FnOnce(&Entry) -> Option<Conversation>,
    ) -> Option<Conversation> {
        let mut entries = self.entries();
        let entry = entries.touch(task_id)?;
        let found = take(entry)?;
        entry.used_at = Instant::now();
        Some(found)
    }

    /// Keeps the conversation up to an event, in place of the one that it continues.
    pub(crate) fn insert(
        &self,
        until: HistoryRef,
        conversation: Conversation,
        continues: Option<&HistoryRef>,
    ) {
        let conversation = conversation.without_summarized();
        let mut entries = self.entries();
        if let Some(before) = continues {
            entries.remove(&before.task_id);
        }
        let bytes = conversation.bytes();
        let entry = Entry { seq: until.seq, conversation, used_at: Instant::now() };
        entries.insert(until.task_id, entry, bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Drops what was not used for long. Returns when there is more to drop, if there is.
    pub(crate) fn sweep(&self, now: Instant) -> Option<Instant> {
        let mut entries = self.entries();
        while let Some(oldest) = entries.oldest() {
            let until = oldest.used_at + UNUSED_MAX;
            if until > now {
                return Some(until);
            }
            entries.remove_oldest();
        }
        entries.shrink();
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use antiphon_core::UserMessage;
    use chrono::DateTime;

    use super::*;

    fn at(name: &str, seq: u64) -> HistoryRef {
        HistoryRef { task_id: TaskId::parse(name).unwrap(), seq: Seq(seq) }
    }

    fn of_bytes(bytes: usize) -> Conversation {
        let mut conversation = Conversation::default();
        let message = UserMessage::text("x".repeat(bytes), DateTime::UNIX_EPOCH);
        conversation.push(Arc::new(message.into()));
        conversation
    }

    #[test]
    fn the_next_task_of_a_session_takes_the_place_of_the_last() {
        let cache = ConversationCache::default();
        cache.insert(at("first", 5), of_bytes(10), None);
        assert_eq!(cache.find(&at("first", 5)), Some(of_bytes(10)));
        assert_eq!(cache.find(&at("first", 4)), None, "another event");
        cache.insert(at("second", 6), of_bytes(20), Some(&at("first", 5)));
        assert_eq!(cache.find(&at("first", 5)), None);
        assert_eq!(cache.find(&at("second", 6)), Some(of_bytes(20)));
    }

    #[test]
    fn the_least_recently_used_goes_when_there_are_too_many_bytes() {
        let cache = ConversationCache::default();
        let third = CONVERSATIONS_BYTES_MAX / 3;
        for name in ["a", "b"] {
            cache.insert(at(name, 1), of_bytes(third), None);
        }
        cache.find(&at("a", 1));
        cache.insert(at("c", 1), of_bytes(third), None);
        assert!(cache.find(&at("b", 1)).is_none());
        assert!(cache.find(&at("a", 1)).is_some() && cache.find(&at("c", 1)).is_some());
        cache.insert(at("d", 1), of_bytes(CONVERSATIONS_BYTES_MAX), None);
        assert!(cache.find(&at("d", 1)).is_none(), "too long");
        assert!(cache.entries().bytes() <= CONVERSATIONS_BYTES_MAX);
    }

    #[test]
    fn what_was_not_used_for_long_is_dropped() {
        let (cache, begin) = (ConversationCache::default(), Instant::now());
        cache.insert(at("a", 1), of_bytes(10), None);
        assert!(cache.sweep(begin).is_some_and(|next| next >= begin + UNUSED_MAX));
        assert_eq!(cache.sweep(Instant::now() + UNUSED_MAX), None);
        assert!(cache.find(&at("a", 1)).is_none());
    }

    #[test]
    fn the_beginning_of_a_longer_conversation_is_found() {
        let cache = ConversationCache::default();
        let mut longer = of_bytes(10);
        for message in of_bytes(20).messages() {
            longer.push(Arc::clone(message));
        }
        cache.insert(at("a", 5), longer, None);
        let a = TaskId::parse("a").unwrap();
        assert_eq!(cache.beginning(&a, (Seq(3), 1)), Some(of_bytes(10)));
        assert_eq!(cache.beginning(&a, (Seq(6), 1)), None, "it does not go that far");
        assert_eq!(cache.beginning(&a, (Seq(5), 3)), None, "it has fewer messages");
    }
}
