//! Thinking that a client carries to its next request, in a field that it does not read: OpenAI's
//! `encrypted_content`, Anthropic's `signature`.
//!
//! The field names the model that wrote the thinking, because no other model may get it, and holds the blocks byte for
//! byte: signatures and encrypted content of the provider pass unchanged. The provider checks them.

use antiphon_core::{AssistantBlock, AssistantMessage, Message, ModelRef, StopReason, Usage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::DateTime;
use serde::{Deserialize, Serialize};

/// Begins every field that is ours.
const MARK: &str = "antiphon-1-";

/// Thinking of one answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedThought {
    /// The model that wrote it; the model of the task when absent.
    pub model: Option<ModelRef>,
    /// How many texts and calls follow it in its answer.
    pub followed_by: usize,
    /// Thinking and opaque blocks.
    pub blocks: Vec<AssistantBlock>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    model: Option<ModelRef>,
    followed_by: usize,
    /// A message in the JSON of session files: it holds each kind of block.
    message: Message,
}

impl CarriedThought {
    /// The text of the field; `None` when there is nothing that a provider would check.
    pub fn to_field(&self) -> Option<String> {
        let signed = |block: &AssistantBlock| match block {
            AssistantBlock::Thinking(thinking) => thinking.signature.is_some(),
            AssistantBlock::Opaque(_) => true,
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => false,
        };
        if !self.blocks.iter().any(signed) {
            return None;
        }
        let message = AssistantMessage {
            content: self.blocks.clone(),
            stop_reason: StopReason::EndTurn,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: None,
            // A repeated request gets the same field.
            timestamp: DateTime::UNIX_EPOCH,
        };
        let (model, followed_by) = (self.model.clone(), self.followed_by);
        let json =
            serde_json::to_vec(&Wire { model, followed_by, message: message.into() }).ok()?;
        Some(format!("{MARK}{}", BASE64.encode(json)))
    }

    /// Reads a field. `Ok(None)` when it is not ours.
    pub fn from_field(field: &str) -> Result<Option<Self>, String> {
        let Some(data) = field.strip_prefix(MARK) else { return Ok(None) };
        let changed = |reason: String| format!("it was changed since it was sent: {reason}");
        let json = BASE64.decode(data).map_err(|error| changed(error.to_string()))?;
        let wire: Wire =
            serde_json::from_slice(&json).map_err(|error| changed(error.to_string()))?;
        let Message::Assistant(message) = wire.message else {
            return Err(changed("it is not of an assistant".to_owned()));
        };
        let is_thought = |block: &AssistantBlock| match block {
            AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => true,
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => false,
        };
        let blocks: Vec<_> = message.content.into_iter().filter(is_thought).collect();
        Ok(Some(Self { model: wire.model, followed_by: wire.followed_by, blocks }))
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::{OpaqueBlock, RawJson, Signature, ThinkingBlock};

    use super::*;

    #[test]
    fn blocks_come_back_byte_for_byte() {
        let thinking = ThinkingBlock {
            thinking: "Hm.".to_owned(),
            signature: Some(Signature("c2ln".to_owned())),
        };
        let value = RawJson::parse(r#"{"type":"reasoning", "encrypted_content":"x"}"#).unwrap();
        let opaque = OpaqueBlock { kind: "reasoning".to_owned(), value };
        let carried = CarriedThought {
            model: ModelRef::parse("openai-responses/o4").ok(),
            followed_by: 2,
            blocks: vec![AssistantBlock::Thinking(thinking), AssistantBlock::Opaque(opaque)],
        };
        let field = carried.to_field().unwrap();
        assert_eq!(carried.to_field().unwrap(), field);
        assert_eq!(CarriedThought::from_field(&field), Ok(Some(carried)));
    }

    #[test]
    fn a_field_of_another_server_is_not_ours_and_a_changed_one_is_refused() {
        assert_eq!(CarriedThought::from_field("gAAAA"), Ok(None));
        assert!(CarriedThought::from_field("antiphon-1-e30=").is_err());
        assert!(CarriedThought::from_field("antiphon-1-!").is_err());
    }
}
