//! Serializes the request.
//!
//! Roles must alternate, so adjacent messages of one role are merged; tool results are part of the
//! user's turn and come first in it. A result can contain only text: its images follow it.
//!
//! The wire refuses a turn whose first call has no signature, unless it carries a placeholder.
//! Calls of other models get the placeholder after their own signatures are removed.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, IdRule, ImageBlock, InputBlock, Message, ModelRef, ProviderError, RawJson,
    Request, Temperature, Tool, ToolArguments, ToolCallBlock, ToolChoice, ToolResultMessage,
};
use antiphon_model_transport::{EncodedParts, History, RequestBody, write_items};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::value::RawValue;

/// The documented placeholder for a missing signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [PartOut<'a>; 1],
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<PartOut<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PartOut<'a> {
    Known(Signed<'a>),
    /// Sent back unchanged.
    Opaque(&'a RawJson),
}

/// A part with an optional signature.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signed<'a> {
    #[serde(flatten)]
    part: KnownPart<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum KnownPart<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: String,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: RawJson,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: &'a str,
    response: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolsOut<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    /// Accepts JSON Schema as it is; `parameters` accepts only a part of `OpenAPI`.
    parameters_json_schema: &'a RawJson,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    thinking_budget: u32,
    include_thoughts: bool,
}

impl<'a> GenerationConfig<'a> {
    /// `None` when the request has none of these.
    fn of(request: &'a Request) -> Option<Self> {
        let sampling = &request.sampling;
        let config = Self {
            max_output_tokens: request.max_tokens.map(std::num::NonZero::get),
            temperature: request.temperature.map(Temperature::get),
            top_p: sampling.top_p.map(f64::from),
            stop_sequences: &sampling.stop,
            seed: sampling.seed,
            presence_penalty: sampling.presence_penalty.map(f64::from),
            frequency_penalty: sampling.frequency_penalty.map(f64::from),
            thinking_config: request.thinking_tokens.map(|budget| ThinkingConfig {
                thinking_budget: budget.get(),
                include_thoughts: true,
            }),
        };
        (config != Self::default()).then_some(config)
    }
}

/// The JSON body.
pub(crate) fn body(
    request: &Request,
    model: &ModelRef,
    encoded: &EncodedParts,
) -> Result<RequestBody, ProviderError> {
    let text = request.system_prompt.as_str();
    let head = Head {
        system_instruction: (!text.trim().is_empty())
            .then(|| Instruction { parts: [KnownPart::Text(text).into()] }),
        tools: encoded.tools.json(&request.tools, tools)?,
        tool_config: tool_config(request),
        generation_config: GenerationConfig::of(request),
    };
    let history = History { messages: &request.messages, model, ids: IdRule::Any };
    encoded.histories.body(&head, "contents", b"", history, |messages, _, items| {
        write_items(&turns(messages), items)
    })
}

fn tools(given: &[Arc<Tool>]) -> [ToolsOut<'_>; 1] {
    [ToolsOut { function_declarations: given.iter().map(|tool| declaration(tool)).collect() }]
}

fn declaration(tool: &Tool) -> FunctionDeclaration<'_> {
    let Tool { name, description, parameters } = tool;
    FunctionDeclaration { name, description, parameters_json_schema: parameters }
}

/// Without tools, the wire refuses a tool choice.
fn tool_config(request: &Request) -> Option<ToolConfig<'_>> {
    if request.tools.is_empty() {
        return None;
    }
    let (mode, allowed_function_names) = match &request.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name.as_str()])),
    };
    let function_calling_config = FunctionCallingConfig { mode, allowed_function_names };
    Some(ToolConfig { function_calling_config })
}

fn turns(messages: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let (role, parts): (_, Vec<PartOut<'_>>) = match &**message {
            Message::User(user) => ("user", user.content.iter().map(input).collect()),
            Message::ToolResult(result) => ("user", tool_result(result)),
            Message::Assistant(answer) => {
                ("model", answer.content.iter().filter_map(assistant_block).collect())
            }
        };
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some(turn) if turn.role == role => turn.parts.extend(parts),
            Some(_) | None => turns.push(Turn { role, parts }),
        }
    }
    for turn in &mut turns {
        sign_first_call(turn);
    }
    turns
}

/// Of several parallel calls, the wire signs only the first and requires only its signature.
fn sign_first_call(turn: &mut Turn<'_>) {
    let first = turn.parts.iter_mut().find_map(|part| match part {
        PartOut::Known(signed) if matches!(signed.part, KnownPart::FunctionCall(_)) => Some(signed),
        PartOut::Known(_) | PartOut::Opaque(_) => None,
    });
    if let Some(call) = first {
        call.thought_signature.get_or_insert(NO_SIGNATURE);
    }
}

fn input(block: &InputBlock) -> PartOut<'_> {
    match block {
        InputBlock::Text(text) => KnownPart::Text(&text.text).into(),
        InputBlock::Image(image) => inline_data(image),
    }
}

fn inline_data(image: &ImageBlock) -> PartOut<'_> {
    let data = BASE64.encode(image.data());
    KnownPart::InlineData(InlineData { mime_type: image.mime_type(), data }).into()
}

fn tool_result(result: &ToolResultMessage) -> Vec<PartOut<'_>> {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in &result.content {
        match block {
            InputBlock::Text(text) => texts.push(text.text.as_str()),
            InputBlock::Image(image) => images.push(inline_data(image)),
        }
    }
    let text = texts.join("\n");
    let response = KnownPart::FunctionResponse(FunctionResponse {
        id: result.tool_call_id.as_str(),
        name: &result.tool_name,
        response: if result.is_error { Outcome::Error(text) } else { Outcome::Output(text) },
    });
    std::iter::once(response.into()).chain(images).collect()
}

fn assistant_block(block: &AssistantBlock) -> Option<PartOut<'_>> {
    match block {
        AssistantBlock::Text(text) => Some(KnownPart::Text(&text.text).into()),
        // The model accepts thinking only with its signature.
        AssistantBlock::Thinking(thinking) => Some(PartOut::Known(Signed {
            part: KnownPart::Text(&thinking.thinking),
            thought: true,
            thought_signature: Some(&thinking.signature.as_ref()?.0),
        })),
        AssistantBlock::ToolCall(call) => Some(function_call(call)),
        AssistantBlock::Opaque(opaque) => Some(PartOut::Opaque(&opaque.value)),
    }
}

fn function_call(call: &ToolCallBlock) -> PartOut<'_> {
    PartOut::Known(Signed {
        part: KnownPart::FunctionCall(FunctionCall {
            id: call.id.as_str(),
            name: &call.name,
            args: match &call.arguments {
                ToolArguments::Object(json) => json.clone(),
                ToolArguments::Malformed(_) => RawJson::empty_object(),
            },
        }),
        thought: false,
        thought_signature: call.signature.as_ref().map(|signature| signature.0.as_str()),
    })
}

impl<'a> From<KnownPart<'a>> for PartOut<'a> {
    fn from(part: KnownPart<'a>) -> Self {
        Self::Known(Signed { part, thought: false, thought_signature: None })
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
            let body = body(&request, &model, &encoded).unwrap();
            let history = for_model(messages, &model, IdRule::Any);
            let mut whole = Vec::new();
            write_items(&turns(&history), &mut whole).unwrap();
            (body.to_vec(), whole)
        });
    }
}
