//! Serializes the request.
//!
//! Roles must alternate, so adjacent messages of one role are merged; tool results are part of the
//! user's turn and come first in it. Cache markers are set where the stable part of the prompt
//! ends: after the tools, after the system prompt, and at the last two turns of the user.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, IdRule, ImageBlock, InputBlock, Message, ModelRef, ProviderError, RawJson,
    Request, Tool, ToolArguments, ToolChoice, ToolResultMessage,
};
use antiphon_model_transport::{EncodedParts, History, HistoryPart, RequestBody, write_items};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::{CacheTtl, DEFAULT_MAX_TOKENS};

/// The wire accepts only such ids.
const IDS: IdRule = IdRule::Plain { bytes_max: 64 };

/// The wire's limit is lower than ours.
const TEMPERATURE_MAX: f64 = 1.0;

/// The wire's minimum thinking budget.
const THINKING_TOKENS_MIN: u32 = 1024;

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<BlockOut<'a>>,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}

#[derive(Serialize)]
struct ToolOut<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> From<&'a Tool> for ToolOut<'a> {
    fn from(tool: &'a Tool) -> Self {
        let Tool { name, description, parameters } = tool;
        Self { name, description, input_schema: parameters, cache_control: None }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoiceOut<'a> {
    Auto(ParallelUse),
    Any(ParallelUse),
    None,
    Tool {
        name: &'a str,
        #[serde(flatten)]
        parallel: ParallelUse,
    },
}

#[derive(Clone, Copy, Serialize)]
struct ParallelUse {
    #[serde(rename = "disable_parallel_tool_use", skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<BlockOut<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BlockOut<'a> {
    Known(CacheMarked<'a>),
    /// Sent back unchanged.
    Opaque(&'a RawJson),
}

/// A block with an optional cache marker.
#[derive(Serialize)]
struct CacheMarked<'a> {
    #[serde(flatten)]
    block: KnownBlock<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: RawJson,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<KnownBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: String,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// The JSON body.
pub(crate) fn body(
    request: &Request,
    model: &ModelRef,
    cache: Option<CacheTtl>,
    encoded: &EncodedParts,
) -> Result<RequestBody, ProviderError> {
    let invalid = |message: String| ProviderError::InvalidRequest { message };
    let temperature = request.temperature.map(antiphon_core::Temperature::get);
    if let Some(found) = temperature.filter(|t| *t > TEMPERATURE_MAX) {
        return Err(invalid(format!("temperature must be from 0 to 1 here, not {found}")));
    }
    let mark = cache.map(CacheControl::of);
    let thinking_tokens = request.thinking_tokens.map_or(0, NonZeroU32::get);
    // Thinking counts against the limit of the answer, so the limit must cover both.
    let max_tokens =
        request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS.saturating_add(thinking_tokens)).get();
    let thinking = thinking(thinking_tokens, max_tokens);
    let head = Head {
        model: &request.model,
        max_tokens,
        stream: true,
        // The wire refuses a temperature together with thinking.
        temperature: temperature.filter(|_| thinking.is_none()),
        top_p: request.sampling.top_p.map(f64::from).filter(|_| thinking.is_none()),
        stop_sequences: &request.sampling.stop,
        thinking,
        tools: encoded.tools.json(&request.tools, |given| tools(given, mark))?,
        tool_choice: tool_choice(request),
        system: system(request, mark),
    };
    let history = History { messages: &request.messages, model, ids: IDS };
    encoded.histories.body(&head, "messages", b"", history, |messages, place, items| {
        write_items(&turns(messages, mark.filter(|_| place == HistoryPart::End)), items)
    })
}

/// The thinking budget must be below the answer's limit; otherwise it is cut to half of the limit,
/// so that tokens remain for the answer. A budget below the wire's minimum is omitted.
fn thinking(wanted: u32, max_tokens: u32) -> Option<Thinking> {
    let budget_tokens = if wanted < max_tokens { wanted } else { max_tokens / 2 };
    (budget_tokens >= THINKING_TOKENS_MIN).then_some(Thinking { kind: "enabled", budget_tokens })
}

/// Without tools, the wire refuses a tool choice.
fn tool_choice(request: &Request) -> Option<ToolChoiceOut<'_>> {
    if request.tools.is_empty() {
        return None;
    }
    let parallel = ParallelUse { disabled: request.sampling.parallel_tool_calls == Some(false) };
    match &request.tool_choice {
        ToolChoice::Auto => parallel.disabled.then_some(ToolChoiceOut::Auto(parallel)),
        ToolChoice::None => Some(ToolChoiceOut::None),
        ToolChoice::Required => Some(ToolChoiceOut::Any(parallel)),
        ToolChoice::Named(name) => Some(ToolChoiceOut::Tool { name, parallel }),
    }
}

impl CacheControl {
    fn of(ttl: CacheTtl) -> Self {
        let ttl = match ttl {
            CacheTtl::FiveMinutes => None,
            CacheTtl::OneHour => Some("1h"),
        };
        Self { kind: "ephemeral", ttl }
    }
}

fn tools(given: &[Arc<Tool>], mark: Option<CacheControl>) -> Vec<ToolOut<'_>> {
    let mut tools: Vec<ToolOut<'_>> = given.iter().map(|tool| (&**tool).into()).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = mark;
    }
    tools
}

fn system(request: &Request, mark: Option<CacheControl>) -> Vec<BlockOut<'_>> {
    let text = request.system_prompt.as_str();
    if text.trim().is_empty() {
        return Vec::new();
    }
    vec![BlockOut::Known(CacheMarked { block: KnownBlock::Text { text }, cache_control: mark })]
}

fn turns(messages: &[Arc<Message>], mark: Option<CacheControl>) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let (role, blocks): (_, Vec<BlockOut<'_>>) = match &**message {
            Message::User(user) => {
                ("user", user.content.iter().map(input).map(BlockOut::from).collect())
            }
            Message::ToolResult(result) => ("user", vec![tool_result(result).into()]),
            Message::Assistant(answer) => (
                "assistant",
                without_trailing_thinking(&answer.content)
                    .iter()
                    .filter_map(assistant_block)
                    .collect(),
            ),
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some(turn) if turn.role == role => turn.content.extend(blocks),
            Some(_) | None => turns.push(Turn { role, content: blocks }),
        }
    }
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == "user").take(2) {
        if let Some(BlockOut::Known(last)) = turn.content.last_mut() {
            last.cache_control = mark;
        }
    }
    turns
}

fn input(block: &InputBlock) -> KnownBlock<'_> {
    match block {
        InputBlock::Text(text) => KnownBlock::Text { text: &text.text },
        InputBlock::Image(image) => KnownBlock::Image { source: image_source(image) },
    }
}

fn image_source(image: &ImageBlock) -> ImageSource<'_> {
    let data = BASE64.encode(image.data());
    ImageSource { kind: "base64", media_type: image.mime_type(), data }
}

fn tool_result(result: &ToolResultMessage) -> KnownBlock<'_> {
    KnownBlock::ToolResult {
        tool_use_id: result.tool_call_id.as_str(),
        content: result.content.iter().map(input).collect(),
        is_error: result.is_error,
    }
}

/// The blocks up to the last one that is not thinking: the wire refuses an answer that ends in
/// thinking, such as an interrupted one or one whose calls have no results.
fn without_trailing_thinking(content: &[AssistantBlock]) -> &[AssistantBlock] {
    let last = content.iter().rposition(|block| match block {
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => true,
        AssistantBlock::Opaque(opaque) => opaque.kind != "redacted_thinking",
        AssistantBlock::Thinking(_) => false,
    });
    last.map_or(&[], |last| &content[..=last])
}

fn assistant_block(block: &AssistantBlock) -> Option<BlockOut<'_>> {
    let known = match block {
        AssistantBlock::Text(text) => KnownBlock::Text { text: &text.text },
        // The wire accepts thinking only with its signature.
        AssistantBlock::Thinking(thinking) => KnownBlock::Thinking {
            thinking: &thinking.thinking,
            signature: &thinking.signature.as_ref()?.0,
        },
        AssistantBlock::ToolCall(call) => KnownBlock::ToolUse {
            id: call.id.as_str(),
            name: &call.name,
            input: match &call.arguments {
                ToolArguments::Object(json) => json.clone(),
                ToolArguments::Malformed(_) => RawJson::empty_object(),
            },
        },
        AssistantBlock::Opaque(opaque) => return Some(BlockOut::Opaque(&opaque.value)),
    };
    Some(known.into())
}

impl<'a> From<KnownBlock<'a>> for BlockOut<'a> {
    fn from(block: KnownBlock<'a>) -> Self {
        Self::Known(CacheMarked { block, cache_control: None })
    }
}

#[cfg(test)]
mod tests {
    use antiphon_conformance::reference::check_growing_histories;
    use antiphon_core::for_model;

    use super::*;

    #[test]
    fn a_history_that_grows_is_encoded_as_the_whole() {
        let model = ModelRef::parse("wire/m").unwrap();
        let mut encoded = EncodedParts::default();
        check_growing_histories(&model, |messages, is_new| {
            if is_new {
                encoded = EncodedParts::default();
            }
            let request = Request { messages: messages.to_vec().into(), ..Request::default() };
            let body = body(&request, &model, Some(CacheTtl::OneHour), &encoded).unwrap();
            let history = for_model(messages, &model, IDS);
            let mut whole = Vec::new();
            write_items(&turns(&history, Some(CacheControl::of(CacheTtl::OneHour))), &mut whole)
                .unwrap();
            (body.to_vec(), whole)
        });
    }
}
