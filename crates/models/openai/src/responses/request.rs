//! Serializes the request.
//!
//! The conversation is a list of items. Reasoning is sent back to the model that wrote it as the
//! encrypted item, never as the summary. The wire refuses a reasoning item without a following item
//! of its answer, so it is omitted together with what it led to: a call that was never executed, an
//! interrupted answer.

use std::borrow::Cow;
use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, InputBlock, Message, ModelRef, ProviderError, RawJson,
    ReasoningEffort, Request, ToolArguments, ToolChoice, ToolResultMessage,
};
use antiphon_model_transport::{EncodedParts, History, RequestBody, write_items};
use serde::Serialize;
use serde_json::value::RawValue;

use super::ResponsesQuirks;
use super::dialect::REASONING;
use crate::IDS;
use crate::data_url::data_url;
use crate::effort::effort;

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
}

#[derive(Serialize)]
struct ReasoningOut {
    effort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct ToolOut<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a RawJson,
    /// Strict schemas, the wire's default, impose rules that tools of third parties do not follow.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoiceOut<'a> {
    Word(&'static str),
    Named {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ItemOut<'a> {
    Known(KnownItem<'a>),
    /// Sent back unchanged.
    Opaque(&'a RawJson),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownItem<'a> {
    Message { role: &'static str, content: ContentOut<'a> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: ContentOut<'a> },
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
    InputText { text: &'a str },
    InputImage { image_url: String, detail: &'static str },
}

/// The JSON body.
pub(super) fn body(
    request: &Request,
    model: &ModelRef,
    quirks: ResponsesQuirks,
    encoded: &EncodedParts,
) -> Result<RequestBody, ProviderError> {
    let encrypted = quirks.encrypted_reasoning.then_some("reasoning.encrypted_content");
    let asked_effort = request.sampling.reasoning_effort.map(ReasoningEffort::as_str);
    let head = Head {
        model: &request.model,
        instructions: Some(request.system_prompt.as_str()).filter(|text| !text.trim().is_empty()),
        stream: true,
        store: false,
        include: encrypted.into_iter().collect(),
        max_output_tokens: request.max_tokens.map(std::num::NonZeroU32::get),
        temperature: request.temperature.map(antiphon_core::Temperature::get),
        top_p: request.sampling.top_p.map(f64::from),
        reasoning: asked_effort.or_else(|| request.thinking_tokens.map(effort)).map(|effort| {
            ReasoningOut { effort, summary: quirks.reasoning_summary.then_some("auto") }
        }),
        tools: encoded.tools.json(&request.tools, tools)?,
        tool_choice: tool_choice(request),
        parallel_tool_calls: request.sampling.parallel_tool_calls,
    };
    let history = History { messages: &request.messages, model, ids: IDS };
    encoded.histories.body(&head, "input", b"", history, |messages, _, input| {
        let items: Vec<_> = messages.iter().flat_map(|message| items(message)).collect();
        write_items(&items, input)
    })
}

fn tools(given: &[Arc<antiphon_core::Tool>]) -> Vec<ToolOut<'_>> {
    given.iter().map(|given| tool(given)).collect()
}

fn tool(tool: &antiphon_core::Tool) -> ToolOut<'_> {
    ToolOut {
        kind: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        strict: false,
    }
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
        ToolChoice::Named(name) => Some(ToolChoiceOut::Named { kind: "function", name }),
    }
}

fn items(message: &Message) -> Vec<ItemOut<'_>> {
    match message {
        Message::User(user) => {
            let content = ContentOut::Parts(user.content.iter().map(part).collect());
            vec![ItemOut::Known(KnownItem::Message { role: "user", content })]
        }
        Message::Assistant(answer) => answered(answer),
        Message::ToolResult(result) => vec![ItemOut::Known(tool_result(result))],
    }
}

fn answered(answer: &AssistantMessage) -> Vec<ItemOut<'_>> {
    let end = answer.content.iter().rposition(led_to_something).map_or(0, |last| last + 1);
    answer.content[..end].iter().filter_map(item).collect()
}

fn led_to_something(block: &AssistantBlock) -> bool {
    match block {
        AssistantBlock::Opaque(opaque) => opaque.kind != REASONING,
        AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => {
            item(block).is_some()
        }
    }
}

fn item(block: &AssistantBlock) -> Option<ItemOut<'_>> {
    let known = match block {
        // As a string: in parts, older servers require the original id of the text.
        AssistantBlock::Text(text) => KnownItem::Message {
            role: "assistant",
            content: ContentOut::Text(text.text.as_str().into()),
        },
        // A summary for the reader only.
        AssistantBlock::Thinking(_) => return None,
        AssistantBlock::ToolCall(call) => KnownItem::FunctionCall {
            call_id: call.id.as_str(),
            name: &call.name,
            arguments: match &call.arguments {
                ToolArguments::Object(json) => json.as_str(),
                ToolArguments::Malformed(_) => "{}",
            },
        },
        AssistantBlock::Opaque(opaque) => return Some(ItemOut::Opaque(&opaque.value)),
    };
    Some(ItemOut::Known(known))
}

/// Text alone is sent as a string: not every server accepts parts here.
fn tool_result(result: &ToolResultMessage) -> KnownItem<'_> {
    let texts: Option<Vec<&str>> = result
        .content
        .iter()
        .map(|block| match block {
            InputBlock::Text(text) => Some(text.text.as_str()),
            InputBlock::Image(_) => None,
        })
        .collect();
    let output = match texts {
        Some(texts) => ContentOut::Text(texts.join("\n").into()),
        None => ContentOut::Parts(result.content.iter().map(part).collect()),
    };
    KnownItem::FunctionCallOutput { call_id: result.tool_call_id.as_str(), output }
}

fn part(block: &InputBlock) -> PartOut<'_> {
    match block {
        InputBlock::Text(text) => PartOut::InputText { text: &text.text },
        InputBlock::Image(image) => {
            PartOut::InputImage { image_url: data_url(image), detail: "auto" }
        }
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
            let body = body(&request, &model, ResponsesQuirks::default(), &encoded).unwrap();
            let history = for_model(messages, &model, IDS);
            let mut whole = Vec::new();
            write_items(
                &history.iter().flat_map(|message| items(message)).collect::<Vec<_>>(),
                &mut whole,
            )
            .unwrap();
            (body.to_vec(), whole)
        });
    }
}
