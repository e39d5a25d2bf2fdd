//! Canonical chat: the plain-text form in which other systems pass a conversation.
//!
//! The external form of a [`Message`]: it has a `system` role and string content, and no blocks.
//! [`ChatCompletionRequest::into_request`] converts a valid request into one for a provider.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use chrono::{DateTime, Months, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    AssistantBlock, AssistantMessage, DomainError, Message, MessageId, Request, StopReason,
    Temperature, Usage, UserMessage,
};

/// Author of a canonical message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user: a person or a program.
    User,
    /// The model.
    Assistant,
    /// The system prompt.
    System,
}

/// One plain-text message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CanonicalMessage {
    /// Id of the message.
    pub id: MessageId,
    /// Author of the message.
    pub role: Role,
    /// Its text; not blank when valid.
    pub content: String,
    /// Time of writing; at most an hour ahead and a hundred years back when valid.
    pub timestamp: DateTime<Utc>,
    /// Metadata of the sender; Antiphon does not read it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl CanonicalMessage {
    /// A message written now.
    pub fn new(role: Role, content: String) -> Self {
        Self::with_timestamp(role, content, Utc::now())
    }

    /// A message written at a given time, for replay.
    pub fn with_timestamp(role: Role, content: String, timestamp: DateTime<Utc>) -> Self {
        Self { id: MessageId::new(), role, content, timestamp, metadata: BTreeMap::new() }
    }

    /// A message written now, with metadata.
    pub fn with_metadata(role: Role, content: String, metadata: BTreeMap<String, String>) -> Self {
        Self { metadata, ..Self::new(role, content) }
    }

    /// Checks a message against the system clock.
    pub fn validate(message: &Self) -> Result<(), DomainError> {
        message.validate_at(Utc::now())
    }

    /// See [`CanonicalMessage::validate`].
    pub fn validate_self(&self) -> Result<(), DomainError> {
        Self::validate(self)
    }

    /// Checks a message against a given time.
    pub fn validate_at(&self, now: DateTime<Utc>) -> Result<(), DomainError> {
        let refuse = |reason: &str| Err(DomainError::InvalidMessage { reason: reason.to_owned() });
        if self.is_empty() {
            return refuse("`content` must not be blank");
        }
        let latest =
            now.checked_add_signed(TimeDelta::hours(1)).unwrap_or(DateTime::<Utc>::MAX_UTC);
        if self.timestamp > latest {
            return refuse("`timestamp` is more than 1 hour in the future");
        }
        let oldest = now.checked_sub_months(Months::new(1200)).unwrap_or(DateTime::<Utc>::MIN_UTC);
        if self.timestamp < oldest {
            return refuse("`timestamp` is more than 100 years in the past");
        }
        Ok(())
    }

    /// Whether the content is only white space.
    pub fn is_empty(&self) -> bool {
        self.content.trim().is_empty()
    }

    /// Length of the content, in bytes.
    pub fn content_len(&self) -> usize {
        self.content.len()
    }
}

/// A canonical message without its content: what a task keeps beside the conversation, and gives back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CanonicalHeader {
    /// Id of the message.
    pub id: MessageId,
    /// Author of the message.
    pub role: Role,
    /// Time of writing.
    pub timestamp: DateTime<Utc>,
    /// Metadata of the sender. Absent: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl From<&CanonicalMessage> for CanonicalHeader {
    fn from(message: &CanonicalMessage) -> Self {
        Self {
            id: message.id,
            role: message.role,
            timestamp: message.timestamp,
            metadata: message.metadata.clone(),
        }
    }
}

/// A request for one answer, in canonical form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatCompletionRequest {
    /// The conversation so far.
    pub messages: Vec<CanonicalMessage>,
    /// Name of the model. Absent: the configured model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Sampling temperature, 0.0 to 2.0. Absent: the default of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Most tokens of the answer, more than 0. Absent: the default of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether to stream the answer.
    #[serde(default)]
    pub stream: bool,
}

impl ChatCompletionRequest {
    /// Checks the request and converts it into one for a provider: system messages become the
    /// system prompt, the others the conversation.
    pub fn into_request(self, now: DateTime<Utc>) -> Result<Request, DomainError> {
        let invalid = |reason: String| DomainError::InvalidMessage { reason };
        if self.messages.is_empty() {
            return Err(invalid("`messages` must not be empty".to_owned()));
        }
        let temperature = self
            .temperature
            .map(Temperature::new)
            .transpose()
            .map_err(|error| invalid(error.to_string()))?;
        let max_tokens = match self.max_tokens {
            None => None,
            Some(n) => Some(
                NonZeroU32::new(n)
                    .ok_or_else(|| invalid("`max_tokens` must be more than 0".to_owned()))?,
            ),
        };
        let mut system = Vec::new();
        let mut messages = Vec::new();
        for (index, message) in self.messages.into_iter().enumerate() {
            if let Err(error) = message.validate_at(now) {
                return Err(invalid(format!("messages[{index}]: {}", error.reason())));
            }
            match message.role {
                Role::System => system.push(message.content),
                Role::User => {
                    messages.push(UserMessage::text(message.content, message.timestamp).into());
                }
                Role::Assistant => messages.push(assistant_message(message).into()),
            }
        }
        if messages.is_empty() {
            return Err(invalid("`messages` must hold more than system messages".to_owned()));
        }
        Ok(Request {
            model: self.model.unwrap_or_default(),
            system_prompt: system.join("\n\n"),
            messages: messages.into(),
            max_tokens,
            temperature,
            ..Request::default()
        })
    }
}

fn assistant_message(message: CanonicalMessage) -> Message {
    Message::Assistant(AssistantMessage {
        content: vec![AssistantBlock::text(message.content)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: message.timestamp,
    })
}

/// One answer, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatCompletionResponse {
    /// The last message of the task.
    pub message: CanonicalMessage,
    /// Model that answered, as `PROVIDER/MODEL`.
    pub model: String,
    /// Tokens used. Absent when the provider does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// Tokens as chat clients count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// Tokens read, cached tokens included.
    pub prompt_tokens: u32,
    /// Tokens written.
    pub completion_tokens: u32,
    /// Sum of both.
    pub total_tokens: u32,
}

impl TokenUsage {
    /// Counts, with their sum.
    pub fn new(prompt_tokens: u32, completion_tokens: u32) -> Self {
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens }
    }
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let prompt = usage
            .input_tokens
            .saturating_add(usage.cache_read_tokens.unwrap_or_default())
            .saturating_add(usage.cache_write_tokens.unwrap_or_default());
        let clamp = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self::new(clamp(prompt), clamp(usage.output_tokens))
    }
}
