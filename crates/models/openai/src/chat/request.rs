//! Serializes the request.
//!
//! The system prompt is the first message. Adjacent user messages are merged, because the templates
//! of many models refuse two in a row. A result can contain only text: its images follow in a user
//! message after the last result of the step, where every server accepts them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, InputBlock, Message, ModelRef, ProviderError, RawJson,
    ReasoningEffort, Request, ToolArguments, ToolChoice, ToolResultMessage,
};
use antiphon_model_transport::{EncodedParts, History, RequestBody, write_items};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{ChatQuirks, EmptyContent, MaxTokensField};
use crate::data_url::data_url;
use crate::effort::effort;

/// Text of a result that has only images.
const IMAGES_FOLLOW: &str = "The images follow.";

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(flatten)]
    sampling: SamplingOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceOut<'a>>,
}

/// Options that have the same names on this wire.
#[derive(Serialize)]
struct SamplingOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    /// Without tools, the wire refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    /// The wire takes metadata of stored answers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ToolOut<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionOut<'a>,
}

#[derive(Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawJson,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoiceOut<'a> {
    Word(&'static str),
    Named {
        #[serde(rename = "type")]
        kind: &'static str,
        function: FunctionName<'a>,
    },
}

#[derive(Serialize)]
struct FunctionName<'a> {
    name: &'a str,
}

#[derive(Default, Serialize)]
struct MessageOut<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ContentOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentOut<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartOut<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PartOut<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct CallOut<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCallOut<'a>,
}

#[derive(Serialize)]
struct FunctionCallOut<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The JSON body.
pub(super) fn body(
    request: &Request,
    model: &ModelRef,
    quirks: ChatQuirks,
    encoded: &EncodedParts,
) -> Result<RequestBody, ProviderError> {
    let limit = request.max_tokens.map(std::num::NonZeroU32::get);
    let (max_completion_tokens, max_tokens) = match quirks.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => (limit, None),
        MaxTokensField::MaxTokens => (None, limit),
    };
    let asked_effort = request.sampling.reasoning_effort.map(ReasoningEffort::as_str);
    let head = Head {
        model: &request.model,
        stream: true,
        stream_options: quirks.stream_usage.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens,
        max_tokens,
        temperature: request.temperature.map(antiphon_core::Temperature::get),
        sampling: sampling(request),
        reasoning_effort: asked_effort
            .or_else(|| request.thinking_tokens.filter(|_| quirks.reasoning_effort).map(effort)),
        tools: encoded.tools.json(&request.tools, tools)?,
        tool_choice: tool_choice(request),
    };
    let mut system = Vec::new();
    write_items(system_message(&request.system_prompt).as_slice(), &mut system)
        .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
    let history = History { messages: &request.messages, model, ids: quirks.ids };
    encoded.histories.body(&head, "messages", &system, history, |history, _, items| {
        write_items(&messages(history, quirks), items)
    })
}

fn sampling(request: &Request) -> SamplingOut<'_> {
    let sampling = &request.sampling;
    SamplingOut {
        top_p: sampling.top_p.map(f64::from),
        stop: &sampling.stop,
        seed: sampling.seed,
        presence_penalty: sampling.presence_penalty.map(f64::from),
        frequency_penalty: sampling.frequency_penalty.map(f64::from),
        parallel_tool_calls: sampling.parallel_tool_calls.filter(|_| !request.tools.is_empty()),
        metadata: &sampling.metadata,
        store: (!sampling.metadata.is_empty()).then_some(true),
    }
}

fn tools(given: &[Arc<antiphon_core::Tool>]) -> Vec<ToolOut<'_>> {
    given.iter().map(|given| tool(given)).collect()
}

fn tool(tool: &antiphon_core::Tool) -> ToolOut<'_> {
    let function = FunctionOut {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
    };
    ToolOut { kind: "function", function }
}

/// Without tools, the wire refuses a tool choice.
fn tool_choice(request: &Request) -> Option<ToolChoiceOut<'_>> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(ToolChoiceOut::Word("none")),
        ToolChoice::Required => Some(ToolChoiceOut::Word("required")),
        ToolChoice::Named(name) => {
            Some(ToolChoiceOut::Named { kind: "function", function: FunctionName { name } })
        }
    }
}

fn system_message(prompt: &str) -> Option<MessageOut<'_>> {
    let content = Some(ContentOut::Text(prompt.into()));
    let message = MessageOut { role: "system", content, ..MessageOut::default() };
    (!prompt.trim().is_empty()).then_some(message)
}

fn messages(history: &[Arc<Message>], quirks: ChatQuirks) -> Vec<MessageOut<'_>> {
    let mut sent = Vec::with_capacity(history.len());
    // The next user message: images of results, then the user's own content.
    let mut user_parts = Vec::new();
    for message in history {
        match &**message {
            Message::User(user) => user_parts.extend(user.content.iter().map(part)),
            Message::Assistant(answer) => {
                if let Some(answer) = assistant_message(answer, quirks) {
                    sent.extend(user_message(std::mem::take(&mut user_parts)));
                    sent.push(answer);
                }
            }
            Message::ToolResult(result) => {
                sent.push(tool_result(result));
                user_parts.extend(images(result));
            }
        }
    }
    sent.extend(user_message(user_parts));
    sent
}

/// Text alone is sent as a string: not every server accepts parts.
fn user_message(parts: Vec<PartOut<'_>>) -> Option<MessageOut<'_>> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            PartOut::Text { text } => Some(text.as_ref()),
            PartOut::ImageUrl { .. } => None,
        })
        .collect();
    let content = match texts {
        Some(texts) if texts.is_empty() => return None,
        Some(texts) => ContentOut::Text(texts.join("\n\n").into()),
        None => ContentOut::Parts(parts),
    };
    Some(MessageOut { role: "user", content: Some(content), ..MessageOut::default() })
}

/// `None` when the wire cannot represent any of it.
fn assistant_message(answer: &AssistantMessage, quirks: ChatQuirks) -> Option<MessageOut<'_>> {
    let text = answer.text();
    let tool_calls: Vec<_> = answer.tool_calls().map(call).collect();
    let content = if !text.is_empty() {
        Some(ContentOut::Text(text.into()))
    } else if tool_calls.is_empty() {
        return None;
    } else {
        match quirks.empty_content {
            EmptyContent::Omitted => None,
            EmptyContent::EmptyText => Some(ContentOut::Text("".into())),
        }
    };
    // With calls, even empty reasoning is required.
    let reasoning = quirks.echo_reasoning && !tool_calls.is_empty();
    Some(MessageOut {
        role: "assistant",
        tool_call_id: None,
        reasoning_content: reasoning.then(|| thinking(answer)),
        content,
        tool_calls,
    })
}

fn thinking(answer: &AssistantMessage) -> String {
    let thoughts = answer.content.iter().map(|block| match block {
        AssistantBlock::Thinking(thinking) => thinking.thinking.as_str(),
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Opaque(_) => "",
    });
    thoughts.collect()
}

fn call(call: &antiphon_core::ToolCallBlock) -> CallOut<'_> {
    let arguments = match &call.arguments {
        ToolArguments::Object(json) => json.as_str(),
        ToolArguments::Malformed(_) => "{}",
    };
    let function = FunctionCallOut { name: &call.name, arguments };
    CallOut { id: call.id.as_str(), kind: "function", function }
}

fn tool_result(result: &ToolResultMessage) -> MessageOut<'_> {
    let texts: Vec<&str> = result.content.iter().filter_map(text).collect();
    let content = match texts.as_slice() {
        [] => Cow::Borrowed(IMAGES_FOLLOW),
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.join("\n")),
    };
    MessageOut {
        role: "tool",
        tool_call_id: Some(result.tool_call_id.as_str()),
        content: Some(ContentOut::Text(content)),
        ..MessageOut::default()
    }
}

/// The images of a result, with the name of its tool.
fn images(result: &ToolResultMessage) -> Vec<PartOut<'_>> {
    let mut parts: Vec<_> = result
        .content
        .iter()
        .filter(|block| matches!(block, InputBlock::Image(_)))
        .map(part)
        .collect();
    if !parts.is_empty() {
        let text = format!("Images of {} ({}):", result.tool_name, result.tool_call_id.as_str());
        parts.insert(0, PartOut::Text { text: text.into() });
    }
    parts
}

fn part(block: &InputBlock) -> PartOut<'_> {
    match block {
        InputBlock::Text(text) => PartOut::Text { text: text.text.as_str().into() },
        InputBlock::Image(image) => {
            PartOut::ImageUrl { image_url: ImageUrl { url: data_url(image) } }
        }
    }
}

fn text(block: &InputBlock) -> Option<&str> {
    match block {
        InputBlock::Text(text) => Some(&text.text),
        InputBlock::Image(_) => None,
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
            let body = body(&request, &model, ChatQuirks::default(), &encoded).unwrap();
            let history = for_model(messages, &model, ChatQuirks::default().ids);
            let mut whole = Vec::new();
            write_items(&super::messages(&history, ChatQuirks::default()), &mut whole).unwrap();
            (body.to_vec(), whole)
        });
    }
}
