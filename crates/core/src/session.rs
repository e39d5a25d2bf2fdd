//! Sessions: conversations.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{Message, SessionId};

/// A conversation: ordered messages under one system prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Which.
    pub id: SessionId,
    /// The scene.
    pub system_prompt: String,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// What was said, in order.
    pub messages: Vec<Arc<Message>>,
}

impl Session {
    /// An empty conversation.
    pub fn new(id: SessionId, system_prompt: impl Into<String>, at: DateTime<Utc>) -> Self {
        Self {
            id,
            system_prompt: system_prompt.into(),
            created_at: at,
            updated_at: at,
            messages: Vec::new(),
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: impl Into<Message>) {
        let message = message.into();
        self.updated_at = self.updated_at.max(message.timestamp());
        self.messages.push(message.into());
    }
}
