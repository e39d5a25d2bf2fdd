//! Conversations of tasks that ended a short while ago, so that the next task of a session reads none of them. A missing
//! entry costs a read, nothing else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{HistoryRef, Seq, TaskId};

use crate::task::state::conversation::Conversation;

/// Maximum memory of the conversations, in bytes. When one more does not fit, those that were not used for the longest time
/// are dropped.
const CONVERSATIONS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Conversations by the last task of each.
#[derive(Debug, Default)]
pub(crate) struct ConversationCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    conversations: HashMap<TaskId, Entry>,
    bytes: usize,
    /// Counts the uses.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    /// Seq of the last event that the conversation covers.
    seq: Seq,
    conversation: Conversation,
    used: u64,
}

impl ConversationCache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recent part of a conversation up to an event.
    pub(crate) fn find(&self, until: &HistoryRef) -> Option<Conversation> {
        let mut entries = self.entries();
        entries.clock += 1;
        let used = entries.clock;
        let entry = entries.conversations.get_mut(&until.task_id)?;
        if entry.seq != until.seq {
            return None;
        }
        entry.used = used;
        Some(entry.conversation.clone())
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
        entries.remove(&until.task_id);
        if conversation.bytes() > CONVERSATIONS_BYTES_MAX {
            return;
        }
        while entries.bytes + conversation.bytes() > CONVERSATIONS_BYTES_MAX {
            let oldest = entries.conversations.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(task_id, _)| task_id.clone()) else { break };
            entries.remove(&oldest);
        }
        entries.bytes += conversation.bytes();
        entries.clock += 1;
        let used = entries.clock;
        entries.conversations.insert(until.task_id, Entry { seq: until.seq, conversation, used });
    }
}

impl Entries {
    fn remove(&mut self, task_id: &TaskId) {
        if let Some(entry) = self.conversations.remove(task_id) {
            self.bytes -= entry.conversation.bytes();
        }
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
        assert!(cache.entries().bytes <= CONVERSATIONS_BYTES_MAX);
    }
}
