//! How chat looks to its clients, for the `OpenAPI` document. Bodies are read field by field and written as
//! JSON; these say so, and nothing else uses them.
#![expect(dead_code, reason = "only their schemas are used")]

use aide::openapi::{MediaType, ReferenceOr, Response, SchemaObject, StatusCode};
use aide::transform::TransformOperation;
use antiphon_core::{
    ChatCompletionRequest, ChatCompletionResponse, ErrorResponse, RawJson, TokenUsage,
};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::openapi;

/// A chat request: canonical when its messages carry `id` and `timestamp`, OpenAI's otherwise.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum ChatRequest {
    Canonical(ChatCompletionRequest),
    OpenAi(OpenAiRequest),
}

/// A chat request as OpenAI's clients send it. Fields that cannot be honored are refused by name.
#[derive(JsonSchema)]
#[schemars(
    example = json!({ "model": "scripted/hello", "messages": [{ "role": "user", "content": "hi" }] }),
    example = json!({
        "model": "scripted/hello", "stream": true, "messages": [{ "role": "user", "content": "hi" }],
    }),
)]
pub(super) struct OpenAiRequest {
    /// An agent, or `PROVIDER/MODEL`.
    model: String,
    /// The conversation so far; the last one is a user's, or the result of a call.
    #[schemars(length(min = 1))]
    messages: Vec<OpenAiMessage>,
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
    #[schemars(range(min = 1))]
    max_completion_tokens: Option<u32>,
    tools: Option<Vec<OpenAiTool>>,
    /// `auto`, `none`, `required`, or a function by name.
    tool_choice: Option<Value>,
    /// `text`, `json_object` or `json_schema`.
    response_format: Option<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// A message, in OpenAI's words.
#[derive(JsonSchema)]
struct OpenAiMessage {
    role: OpenAiRole,
    /// A text, or a list of parts.
    content: Option<Value>,
    tool_calls: Option<Vec<OpenAiCall>>,
    tool_call_id: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OpenAiRole {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// A tool that the client runs.
#[derive(JsonSchema)]
struct OpenAiTool {
    r#type: Function,
    function: OpenAiFunction,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Function {
    Function,
}

#[derive(JsonSchema)]
struct OpenAiFunction {
    name: String,
    description: Option<String>,
    /// JSON Schema of its arguments.
    parameters: Option<RawJson>,
}

/// A call of a tool that the client runs.
#[derive(JsonSchema)]
struct OpenAiCall {
    id: String,
    r#type: Function,
    function: OpenAiCalled,
}

#[derive(JsonSchema)]
struct OpenAiCalled {
    name: String,
    /// JSON, as a text.
    arguments: String,
}

#[derive(JsonSchema)]
struct StreamOptions {
    /// Says at the end what it took.
    include_usage: Option<bool>,
}

/// An answer, in the words of the request.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum ChatAnswer {
    Canonical(ChatCompletionResponse),
    OpenAi(OpenAiAnswer),
}

/// An answer, in OpenAI's words.
#[derive(JsonSchema)]
pub(super) struct OpenAiAnswer {
    id: String,
    object: String,
    created: i64,
    model: String,
    choices: Vec<OpenAiChoice>,
    usage: TokenUsage,
}

#[derive(JsonSchema)]
struct OpenAiChoice {
    index: u32,
    message: OpenAiSaid,
    finish_reason: FinishReason,
}

#[derive(JsonSchema)]
struct OpenAiSaid {
    role: OpenAiRole,
    content: Option<String>,
    tool_calls: Option<Vec<OpenAiCall>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// An error, in OpenAI's words.
#[derive(JsonSchema)]
struct OpenAiError {
    error: OpenAiFault,
}

#[derive(JsonSchema)]
struct OpenAiFault {
    message: String,
    r#type: String,
    /// Which field.
    param: Option<String>,
    code: Option<String>,
}

/// An error: in the words of the request, or, of whoever was not let in, in native ones.
#[derive(JsonSchema)]
#[serde(untagged)]
enum ChatError {
    OpenAi(OpenAiError),
    Native(ErrorResponse),
}

/// Who can answer.
#[derive(JsonSchema)]
pub(super) struct Models {
    object: String,
    data: Vec<Model>,
}

/// An agent, or a model.
#[derive(JsonSchema)]
pub(super) struct Model {
    /// What to write into `model`.
    id: String,
    object: String,
    created: i64,
    owned_by: String,
}

/// Says that the answer may come in pieces.
pub(super) fn streamed(mut route: TransformOperation<'_>) -> TransformOperation<'_> {
    let responses = route.inner_mut().responses.get_or_insert_default();
    if let Some(ReferenceOr::Item(answer)) = responses.responses.get_mut(&StatusCode::Code(200)) {
        answer.content.insert(openapi::STREAM.to_owned(), media(openapi::streamed()));
    }
    route
}

/// Says that it fails so, in the words of the request.
pub(super) fn failing<'t>(
    mut route: TransformOperation<'t>,
    statuses: &[u16],
) -> TransformOperation<'t> {
    let schema = aide::generate::in_context(|context| context.schema.subschema_for::<ChatError>());
    let responses = route.inner_mut().responses.get_or_insert_default();
    for status in statuses {
        let mut failure = Response {
            description: "An error, in the words of the request.".to_owned(),
            ..Response::default()
        };
        failure.content.insert("application/json".to_owned(), media(schema.clone()));
        responses.responses.insert(StatusCode::Code(*status), ReferenceOr::Item(failure));
    }
    route
}

fn media(json_schema: Schema) -> MediaType {
    let schema = SchemaObject { json_schema, external_docs: None, example: None };
    MediaType { schema: Some(schema), ..MediaType::default() }
}
