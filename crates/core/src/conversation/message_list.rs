//! The messages of a conversation, shared between its task and the requests of that task.
//!
//! A copy of the list costs the same however long the conversation is. Adding a message copies the addresses of the
//! messages only while another owner has the list.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Message;

/// Messages in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageList(Arc<Vec<Arc<Message>>>);

impl MessageList {
    /// Adds a message at the end.
    pub fn push(&mut self, message: Arc<Message>) {
        self.list().push(message);
    }

    /// Keeps the first `count` messages.
    pub fn truncate(&mut self, count: usize) {
        if count < self.len() {
            self.list().truncate(count);
        }
    }

    /// Leaves out the first `count` messages.
    pub fn remove_first(&mut self, count: usize) {
        if count > 0 {
            let count = count.min(self.len());
            self.list().drain(..count);
        }
    }

    /// The messages, to be changed: copied first if they are shared.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Arc<Message>> {
        self.list().iter_mut()
    }

    fn list(&mut self) -> &mut Vec<Arc<Message>> {
        Arc::make_mut(&mut self.0)
    }
}

impl Deref for MessageList {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self(Arc::new(messages))
    }
}

impl FromIterator<Arc<Message>> for MessageList {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        messages.into_iter().collect::<Vec<_>>().into()
    }
}

impl Extend<Arc<Message>> for MessageList {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        self.list().extend(messages);
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut MessageList {
    type Item = &'a mut Arc<Message>;
    type IntoIter = std::slice::IterMut<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::UserMessage;

    fn message(text: &str) -> Arc<Message> {
        UserMessage::text(text, DateTime::UNIX_EPOCH).into()
    }

    #[test]
    fn a_copy_shares_its_messages_until_one_of_the_two_changes() {
        let mut list: MessageList = vec![message("a"), message("b")].into();
        let copy = list.clone();
        assert!(std::ptr::eq(&raw const list[0], &raw const copy[0]));
        list.push(message("c"));
        assert_eq!((list.len(), copy.len()), (3, 2));
        assert!(Arc::ptr_eq(&list[0], &copy[0]), "the messages themselves are shared still");
        let before = &raw const list[0];
        list.push(message("d"));
        list.truncate(9);
        assert!(std::ptr::eq(before, &raw const list[0]) || list.len() > 3, "it has it alone now");
        list.truncate(2);
        assert_eq!(list, copy);
        list.remove_first(1);
        assert_eq!(*list, copy[1..]);
    }
}
