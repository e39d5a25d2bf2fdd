//! The messages of a session as updates, for an editor that loads it.

use std::path::Path;

use antiphon_core::{AssistantBlock, InputBlock, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate, TextContent,
};
use crate::tool_call_update::{self, FINAL};

/// What one message shows.
pub(crate) fn updates(message: &Message, root: &Path) -> Vec<SessionUpdate> {
    match message {
        Message::User(user) => user.content.iter().map(input).collect(),
        Message::Assistant(answer) => {
            let id = MessageId::new(Uuid::new_v4().to_string());
            answer.content.iter().filter_map(|block| output(block, &id, root)).collect()
        }
        Message::ToolResult(result) if result.tool_name == FINAL => Vec::new(),
        Message::ToolResult(result) => {
            vec![SessionUpdate::ToolCallUpdate(tool_call_update::ended(result, None))]
        }
    }
}

fn input(block: &InputBlock) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(content(block)))
}

/// A block of a user's message.
pub(crate) fn content(block: &InputBlock) -> ContentBlock {
    match block {
        InputBlock::Text(text) => ContentBlock::Text(TextContent::new(text.text.clone())),
        InputBlock::Image(image) => {
            ContentBlock::Image(ImageContent::new(STANDARD.encode(image.data()), image.mime_type()))
        }
    }
}

fn output(block: &AssistantBlock, id: &MessageId, root: &Path) -> Option<SessionUpdate> {
    let chunk = |text: &str| {
        ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(id.clone())
    };
    match block {
        AssistantBlock::Text(text) => Some(SessionUpdate::AgentMessageChunk(chunk(&text.text))),
        AssistantBlock::Thinking(thinking) => {
            Some(SessionUpdate::AgentThoughtChunk(chunk(&thinking.thinking)))
        }
        AssistantBlock::ToolCall(call) if call.name == FINAL => {
            let arguments = call.arguments.object()?.to::<serde_json::Value>().ok()?;
            let text = arguments["result"].as_str()?;
            Some(SessionUpdate::AgentMessageChunk(chunk(text)))
        }
        AssistantBlock::ToolCall(call) => {
            Some(SessionUpdate::ToolCall(tool_call_update::requested(call, root)))
        }
        AssistantBlock::Opaque(_) => None,
    }
}
