//! The turns of `messages` and `system`, read into a conversation. Cache marks are accepted: the provider's own place
//! them.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AssistantBlock, InputBlock, OpaqueBlock, RawJson, Signature, ThinkingBlock, ToolArguments,
};
use antiphon_interface_transport::answer::{
    AnswerError, AssistantPart, CarriedThought, Conversation, ConversationBuilder, image,
};
use serde_json::Value;

/// Most messages of a request.
const MESSAGES_MAX: usize = 10_000;

/// The conversation of a request.
pub(crate) fn read(body: &Value) -> Result<Conversation, AnswerError> {
    let mut builder = ConversationBuilder::new("messages", Vec::new());
    for (field, block) in blocks("system", &body["system"])? {
        builder.system(text(&field, block)?.to_owned());
    }
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return Err(AnswerError::field("messages", "missing or empty: send at least one message"));
    };
    if messages.len() > MESSAGES_MAX {
        return Err(AnswerError::field("messages", format!("at most {MESSAGES_MAX}")));
    }
    for (index, message) in messages.iter().enumerate() {
        let field = format!("messages[{index}]");
        let content = blocks(&format!("{field}.content"), &message["content"])?;
        match message["role"].as_str() {
            Some("user") => user(&mut builder, &field, content)?,
            Some("assistant") => {
                let mut parts = Vec::new();
                for (field, block) in content {
                    parts.extend(assistant_part(&field, block)?);
                }
                builder.assistant(&field, parts, SystemClock.now())?;
            }
            Some("system") => {
                for (field, block) in content {
                    builder.system(text(&field, block)?.to_owned());
                }
            }
            Some(_) | None => {
                let message = "expected `user` or `assistant`";
                return Err(AnswerError::field(format!("{field}.role"), message));
            }
        }
    }
    builder.end()
}

/// A text, or a list of blocks, each with its place.
fn blocks<'a>(field: &str, content: &'a Value) -> Result<Vec<(String, &'a Value)>, AnswerError> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(_) => Ok(vec![(field.to_owned(), content)]),
        Value::Array(blocks) => {
            let placed = |(index, block)| (format!("{field}[{index}]"), block);
            Ok(blocks.iter().enumerate().map(placed).collect())
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(AnswerError::field(field, "expected a text, or a list of blocks"))
        }
    }
}

fn text<'a>(field: &str, block: &'a Value) -> Result<&'a str, AnswerError> {
    let text = block.as_str().or_else(|| block["text"].as_str());
    text.ok_or_else(|| AnswerError::field(field, "expected a text"))
}

/// Results of tools come first in a turn of the user.
fn user(
    builder: &mut ConversationBuilder,
    field: &str,
    content: Vec<(String, &Value)>,
) -> Result<(), AnswerError> {
    let mut said = Vec::new();
    let had_content = content.len();
    for (place, block) in content {
        if block["type"] != "tool_result" {
            said.push(input(&place, block)?);
            continue;
        }
        let Some(id) = block["tool_use_id"].as_str() else {
            return Err(AnswerError::field(format!("{place}.tool_use_id"), "missing"));
        };
        let mut result = Vec::new();
        for (place, block) in blocks(&format!("{place}.content"), &block["content"])? {
            result.push(input(&place, block)?);
        }
        let is_error = block["is_error"].as_bool().unwrap_or_default();
        builder.result(&place, id, result, is_error, SystemClock.now())?;
    }
    if said.is_empty() && had_content > 0 {
        return Ok(());
    }
    builder.user(field, said, SystemClock.now())
}

fn input(field: &str, block: &Value) -> Result<InputBlock, AnswerError> {
    match block["type"].as_str() {
        None | Some("text") => text(field, block).map(InputBlock::text),
        Some("image") => {
            let source = &block["source"];
            if source["type"] != "base64" {
                let message = "image URLs are not fetched: send the image in base64";
                return Err(AnswerError::field(format!("{field}.source"), message));
            }
            let word = |name: &str| source[name].as_str().unwrap_or_default();
            image(field, word("media_type"), word("data"))
        }
        // A tool that the client found by a search: the client offers it from now on.
        Some("tool_reference") => {
            let name = block["tool_name"].as_str().unwrap_or_default();
            Ok(InputBlock::text(format!("[tool {name}]")))
        }
        Some(other) => {
            let message = format!("blocks of type `{other}` are not supported here");
            Err(AnswerError::field(field, message))
        }
    }
}

fn assistant_part(field: &str, block: &Value) -> Result<Option<AssistantPart>, AnswerError> {
    match block["type"].as_str() {
        None | Some("text") => Ok(Some(AssistantPart::Text(text(field, block)?.to_owned()))),
        Some("tool_use") => {
            let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
                return Err(AnswerError::field(field, "`id` or `name` is missing"));
            };
            let arguments = ToolArguments::from_model(block["input"].to_string());
            AssistantPart::call(field, id, name.to_owned(), arguments).map(Some)
        }
        Some("thinking") => thought(field, block, block["signature"].as_str()),
        Some("redacted_thinking") => thought(field, block, block["data"].as_str()),
        // Calls of Anthropic's own tools: what they found is in the texts that follow.
        Some(_) => Ok(None),
    }
}

/// Thinking that we or Anthropic signed. Without a signature it cannot be sent to a model, and is left out.
fn thought(
    field: &str,
    block: &Value,
    signature: Option<&str>,
) -> Result<Option<AssistantPart>, AnswerError> {
    let Some(signature) = signature.filter(|signature| !signature.is_empty()) else {
        return Ok(None);
    };
    let refuse = |reason: String| AnswerError::field(format!("{field}.signature"), reason);
    if let Some(carried) = CarriedThought::from_field(signature).map_err(refuse)? {
        return Ok(Some(AssistantPart::Thought(carried)));
    }
    let foreign = if block["type"] == "thinking" {
        AssistantBlock::Thinking(ThinkingBlock {
            thinking: block["thinking"].as_str().unwrap_or_default().to_owned(),
            signature: Some(Signature(signature.to_owned())),
        })
    } else {
        let value = RawJson::of(block).map_err(|error| AnswerError::field(field, error))?;
        AssistantBlock::Opaque(OpaqueBlock { kind: "redacted_thinking".to_owned(), value })
    };
    let thought = CarriedThought { model: None, followed_by: 0, blocks: vec![foreign] };
    Ok(Some(AssistantPart::Thought(thought)))
}
