//! Estimated usage where a script gives none: one token per four characters of text, rounded up. It
//! is for testing accounting, and always the same for the same request and reply.

use antiphon_core::{
    AssistantBlock, InputBlock, Message, Request, ToolArguments, ToolCallBlock, Usage,
};
use serde::Deserialize;

const CHARS_PER_TOKEN: u64 = 4;

/// The `usage` of a reply. Missing counts are estimated, except for the cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names are those of `Usage`")]
pub(crate) struct ScriptedUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl ScriptedUsage {
    pub(crate) fn of(&self, request: &Request, output_chars: u64) -> Usage {
        Usage {
            input_tokens: self
                .input_tokens
                .unwrap_or_else(|| input_chars(request).div_ceil(CHARS_PER_TOKEN)),
            output_tokens: self
                .output_tokens
                .unwrap_or_else(|| output_chars.div_ceil(CHARS_PER_TOKEN)),
            cache_read_tokens: self.cache_read_tokens,
            cache_write_tokens: self.cache_write_tokens,
        }
    }
}

pub(crate) fn chars(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn input_chars(request: &Request) -> u64 {
    let tools = request
        .tools
        .iter()
        .map(|tool| chars(&tool.name) + chars(&tool.description) + chars(tool.parameters.as_str()));
    let messages = request.messages.iter().map(|message| match &**message {
        Message::User(message) => input_blocks(&message.content),
        Message::Assistant(message) => message.content.iter().map(assistant_block).sum(),
        Message::ToolResult(message) => input_blocks(&message.content),
    });
    chars(&request.system_prompt) + tools.sum::<u64>() + messages.sum::<u64>()
}

fn input_blocks(content: &[InputBlock]) -> u64 {
    content
        .iter()
        .map(|block| match block {
            InputBlock::Text(block) => chars(&block.text),
            InputBlock::Image(_) => 0,
        })
        .sum()
}

fn assistant_block(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(block) => chars(&block.text),
        AssistantBlock::Thinking(block) => chars(&block.thinking),
        AssistantBlock::ToolCall(ToolCallBlock { name, arguments, .. }) => {
            chars(name)
                + match arguments {
                    ToolArguments::Object(json) => chars(json.as_str()),
                    ToolArguments::Malformed(text) => chars(text),
                }
        }
        AssistantBlock::Opaque(block) => chars(block.value.as_str()),
    }
}
