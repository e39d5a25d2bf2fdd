//! Sessions: conversations.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    AssistantBlock, InputBlock, Message, RawJson, SessionId, ToolArguments, escape_hidden_text,
};

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

    /// The same conversation with hidden characters escaped, as in everything that enters a conversation
    /// from a file. What a model has signed stays as it is: only that model reads it, and checks it.
    #[must_use]
    pub fn with_hidden_text_escaped(mut self) -> Self {
        escape(&mut self.system_prompt);
        for message in &mut self.messages {
            match Arc::make_mut(message) {
                Message::User(message) => escape_input(&mut message.content),
                Message::ToolResult(message) => escape_input(&mut message.content),
                Message::Assistant(message) => message.content.iter_mut().for_each(escape_answer),
            }
        }
        self
    }
}

fn escape(text: &mut String) {
    if let Cow::Owned(escaped) = escape_hidden_text(text) {
        *text = escaped;
    }
}

fn escape_input(blocks: &mut [InputBlock]) {
    for block in blocks {
        match block {
            InputBlock::Text(block) => escape(&mut block.text),
            InputBlock::Image(_) => {}
        }
    }
}

fn escape_answer(block: &mut AssistantBlock) {
    match block {
        AssistantBlock::Text(block) => escape(&mut block.text),
        AssistantBlock::Thinking(block) if block.signature.is_none() => escape(&mut block.thinking),
        AssistantBlock::ToolCall(call) if call.signature.is_none() => {
            escape_arguments(&mut call.arguments);
        }
        AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Opaque(_) => {}
    }
}

fn escape_arguments(arguments: &mut ToolArguments) {
    match arguments {
        ToolArguments::Malformed(text) => escape(text),
        ToolArguments::Object(object) => {
            let Ok(mut value) = object.to::<Value>() else { return };
            // Without a change they stay byte for byte.
            if escape_strings(&mut value)
                && let Ok(escaped) = RawJson::of(&value)
            {
                *object = escaped;
            }
        }
    }
}

/// Returns whether a string has changed.
fn escape_strings(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match escape_hidden_text(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(escaped) => {
                *text = escaped;
                true
            }
        },
        Value::Array(values) => {
            values.iter_mut().fold(false, |any, value| escape_strings(value) | any)
        }
        Value::Object(fields) => {
            let mut changed = false;
            let all = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
                let before = name.len();
                escape(&mut name);
                changed |= escape_strings(&mut value) || name.len() != before;
                (name, value)
            });
            *fields = all.collect();
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
