//! Schemas of chat requests and responses, for the `OpenAPI` document alone. The bodies themselves are read
//! field by field and written as JSON.
#![expect(dead_code, reason = "only their schemas are used")]

use antiphon_core::{
    ChatCompletionRequest, ChatCompletionResponse, ErrorResponse, RawJson, TokenUsage,
};
use antiphon_interface_transport::openapi::{
    DescribedStatus, EVENT_STREAM, MediaType, ReferenceOr, ResponseDescription, SchemaObject,
    TransformOperation, event_schema, in_context,
};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// A chat request: canonical when its messages have `id` and `timestamp`, OpenAI's otherwise.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(crate) enum ChatRequest {
    Canonical(ChatCompletionRequest),
    OpenAi(Box<OpenAiRequest>),
}

/// A chat request as OpenAI's clients send it. Unsupported fields are refused by name.
#[derive(JsonSchema)]
#[schemars(
    example = json!({ "model": "scripted/hello", "messages": [{ "role": "user", "content": "hi" }] }),
    example = json!({
        "model": "scripted/hello", "stream": true, "messages": [{ "role": "user", "content": "hi" }],
    }),
)]
pub(crate) struct OpenAiRequest {
    /// Name of an agent, or `PROVIDER/MODEL`: see `GET /v1/models`.
    model: String,
    /// The conversation so far; the last message is a user's, or the result of a tool call.
    #[schemars(length(min = 1))]
    messages: Vec<OpenAiMessage>,
    /// Sampling temperature, from 0 to 2; the default of the model when absent.
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    /// Considers only the most likely tokens that together have this probability; from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    top_p: Option<f64>,
    /// A text, or up to 16 of them, at which the completion stops.
    stop: Option<Value>,
    /// The same seed makes the same completion more likely.
    seed: Option<i64>,
    /// Makes tokens that are in the text less likely; from -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    presence_penalty: Option<f64>,
    /// Makes tokens less likely the more often they are in the text; from -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    frequency_penalty: Option<f64>,
    /// How much the model reasons: `none`, `minimal`, `low`, `medium`, `high` or `xhigh`.
    reasoning_effort: Option<String>,
    /// Whether one answer may call several tools; the default of the model when absent.
    parallel_tool_calls: Option<bool>,
    /// Tokens of the completion, at most; the limit of the model when absent.
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
    /// The same as `max_tokens`.
    #[schemars(range(min = 1))]
    max_completion_tokens: Option<u32>,
    /// Tools that the client runs.
    tools: Option<Vec<OpenAiTool>>,
    /// `auto`, `none`, `required`, or a function by name; `auto` when absent.
    tool_choice: Option<Value>,
    /// Format of the completion: `text`, `json_object` or `json_schema`; `text` when absent.
    response_format: Option<Value>,
    /// `true`: the response is server-sent events; `false` when absent.
    stream: Option<bool>,
    /// Only with `stream`.
    stream_options: Option<StreamOptions>,
}

/// A message in OpenAI's shape.
#[derive(JsonSchema)]
struct OpenAiMessage {
    /// Author of the message. `developer` counts as `system`.
    role: OpenAiRole,
    /// A text, or a list of parts: `text`, or `image_url` with a `data:` URL.
    content: Option<Value>,
    /// Calls of an `assistant` message; none when absent.
    tool_calls: Option<Vec<OpenAiCall>>,
    /// Of a `tool` message: id of the call that it is the result of.
    tool_call_id: Option<String>,
}

/// Who a message is of.
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
    /// Always `function`.
    r#type: Function,
    /// The tool.
    function: OpenAiFunction,
}

/// The only kind of tool.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Function {
    Function,
}

/// What the model reads of a tool.
#[derive(JsonSchema)]
struct OpenAiFunction {
    /// Name of the tool, unique in the request.
    name: String,
    /// What the tool does; the model reads it. Absent: nothing is said.
    description: Option<String>,
    /// JSON Schema of its arguments; none when absent.
    parameters: Option<RawJson>,
}

/// A call of a tool that the client runs.
#[derive(JsonSchema)]
struct OpenAiCall {
    /// Id of the call; its result carries the same.
    id: String,
    /// Always `function`.
    r#type: Function,
    /// The tool and its arguments.
    function: OpenAiCalled,
}

/// A tool and its arguments.
#[derive(JsonSchema)]
struct OpenAiCalled {
    /// Name of the tool.
    name: String,
    /// The arguments: JSON as a text.
    arguments: String,
}

/// What a stream has beside the answer.
#[derive(JsonSchema)]
struct StreamOptions {
    /// `true`: the last chunk has the token usage.
    include_usage: Option<bool>,
}

/// A completion in the shape of the request.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(crate) enum ChatAnswer {
    Canonical(ChatCompletionResponse),
    OpenAi(OpenAiAnswer),
}

/// A completion in OpenAI's shape.
#[derive(JsonSchema)]
pub(crate) struct OpenAiAnswer {
    /// Id of the completion: `chatcmpl-` and the id of its task.
    id: String,
    /// Always `chat.completion`.
    object: String,
    /// Time of the completion, in seconds since 1970.
    created: i64,
    /// The `model` of the request.
    model: String,
    /// The answer; always one.
    choices: Vec<OpenAiChoice>,
    /// Tokens of all model calls of the completion.
    usage: TokenUsage,
}

/// An answer and why it ended.
#[derive(JsonSchema)]
struct OpenAiChoice {
    /// Always 0.
    index: u32,
    /// The answer.
    message: OpenAiAnswerMessage,
    /// Why the answer ended.
    finish_reason: FinishReason,
}

/// The message of an answer.
#[derive(JsonSchema)]
struct OpenAiAnswerMessage {
    /// Always `assistant`.
    role: OpenAiRole,
    /// Text of the answer; `null` when it has calls only.
    content: Option<String>,
    /// Calls of the client's tools; none when absent.
    tool_calls: Option<Vec<OpenAiCall>>,
}

/// Why an answer ended.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// An error in OpenAI's shape.
#[derive(JsonSchema)]
struct OpenAiError {
    /// What is wrong.
    error: OpenAiFault,
}

/// What an error says.
#[derive(JsonSchema)]
struct OpenAiFault {
    /// What is wrong, and what to do.
    message: String,
    /// Kind of the error, such as `invalid_request_error`.
    r#type: String,
    /// The field that is wrong; `null` when it is none.
    param: Option<String>,
    /// Code of the error (errors.md); `null` when there is none.
    code: Option<String>,
}

/// An error in the shape of the request, or in the native shape when authentication fails.
#[derive(JsonSchema)]
#[serde(untagged)]
enum ChatError {
    OpenAi(OpenAiError),
    Native(ErrorResponse),
}

/// Agents and models that a completion can name.
#[derive(JsonSchema)]
pub(crate) struct Models {
    /// Always `list`.
    object: String,
    /// Agents first, then models.
    data: Vec<Model>,
}

/// An agent or a model.
#[derive(JsonSchema)]
pub(crate) struct Model {
    /// Value for `model` of a chat request.
    id: String,
    /// Always `model`.
    object: String,
    /// Always 0: unknown.
    created: i64,
    /// `antiphon` for an agent, or the provider of the model.
    owned_by: String,
}

/// Describes that the response may be streamed.
pub(crate) fn with_stream(mut route: TransformOperation<'_>) -> TransformOperation<'_> {
    let responses = route.inner_mut().responses.get_or_insert_default();
    if let Some(ReferenceOr::Item(response)) =
        responses.responses.get_mut(&DescribedStatus::Code(200))
    {
        response.content.insert(EVENT_STREAM.to_owned(), media(event_schema()));
    }
    route
}

/// Describes errors in the shape of the request.
pub(crate) fn with_errors<'t>(
    mut route: TransformOperation<'t>,
    statuses: &[u16],
) -> TransformOperation<'t> {
    let schema = in_context(|context| context.schema.subschema_for::<ChatError>());
    let responses = route.inner_mut().responses.get_or_insert_default();
    for status in statuses {
        let mut failure = ResponseDescription {
            description: "An error in the shape of the request.".to_owned(),
            ..ResponseDescription::default()
        };
        failure.content.insert("application/json".to_owned(), media(schema.clone()));
        responses.responses.insert(DescribedStatus::Code(*status), ReferenceOr::Item(failure));
    }
    route
}

fn media(json_schema: Schema) -> MediaType {
    let schema = SchemaObject { json_schema, external_docs: None, example: None };
    MediaType { schema: Some(schema), ..MediaType::default() }
}
