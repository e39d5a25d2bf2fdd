//! Sessions: conversations.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{Message, SessionId};

/// A conversation: ordered messages under one system prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Id of the session.
    pub id: SessionId,
    /// System prompt; empty for none.
    pub system_prompt: String,
    /// Time of creation.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
    /// Messages, in order.
    pub messages: Vec<Arc<Message>>,
}

impl Session {
    /// An empty session.
    pub fn new(id: SessionId, system_prompt: impl Into<String>, at: DateTime<Utc>) -> Self {
        Self {
            id,
            system_prompt: system_prompt.into(),
            created_at: at,
            updated_at: at,
            messages: Vec::new(),
        }
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Message>) {
        let message = message.into();
        self.updated_at = self.updated_at.max(message.timestamp());
        self.messages.push(message.into());
    }
}
