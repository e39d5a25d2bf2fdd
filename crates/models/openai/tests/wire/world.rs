//! A model server, a provider of either wire, and the outcome of a request.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, InputBlock, Message, MessageStream, ModelRef,
    OpaqueBlock, Provider, ProviderError, RawJson, Request, StopReason, StreamError, ThinkingBlock,
    Tool, ToolArguments, ToolCallBlock, ToolCallId, ToolResultMessage, Usage, UserMessage,
};
use antiphon_model_server::{ModelServer, RecordedRequest, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use chrono::{DateTime, Utc};

pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Every reply is also sent in chunks of these sizes.
const SPLITS: [usize; 3] = [1, 7, 4096];

#[derive(Debug, Clone, Copy)]
pub(crate) enum Wire {
    Chat(ChatQuirks),
    Responses(ResponsesQuirks),
}

impl Wire {
    pub(crate) fn chat() -> Self {
        Self::Chat(ChatQuirks::default())
    }

    pub(crate) fn responses() -> Self {
        Self::Responses(ResponsesQuirks::default())
    }

    fn provider(self, url: &str) -> Box<dyn Provider> {
        let name = "openai".to_owned();
        let base_url = Endpoint::parse(url).unwrap().at("/v1");
        let api_key = Some("sk-test".into());
        let transport = Transport::new(&TransportConfig::default()).unwrap();
        match self {
            Self::Chat(quirks) => {
                let config = ChatConfig { name, base_url, api_key, quirks };
                Box::new(ChatCompletions::new(config, transport))
            }
            Self::Responses(quirks) => {
                let config = ResponsesConfig { name, base_url, api_key, quirks };
                Box::new(Responses::new(config, transport))
            }
        }
    }
}

/// The outcome of a request: the message, possibly partial, and the error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) message: AssistantMessage,
    pub(crate) error: Option<StreamError>,
}

/// A reply and its expected outcome.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) reply: Reply,
    pub(crate) outcome: Outcome,
}

/// Checks each case with chunks of every size.
pub(crate) async fn check(wire: Wire, cases: impl IntoIterator<Item = Case>) {
    let cases: Vec<Case> = cases.into_iter().collect();
    let in_pieces = |case: &Case| SPLITS.map(|size| case.reply.clone().split(size));
    let world = World::start(wire, cases.iter().flat_map(in_pieces).collect()).await;
    for Case { name, outcome, .. } in &cases {
        for size in SPLITS {
            assert_eq!(world.ask(hello()).await, *outcome, "{name}, in pieces of {size}");
        }
    }
}

/// Sends one request.
pub(crate) async fn ask(
    wire: Wire,
    reply: Reply,
    request: Request,
) -> (Outcome, Vec<RecordedRequest>) {
    let world = World::start(wire, vec![reply]).await;
    (world.ask(request).await, world.server.requests())
}

/// A server with its replies, in order, and a provider.
struct World {
    server: ModelServer,
    provider: Box<dyn Provider>,
}

impl World {
    async fn start(wire: Wire, replies: Vec<Reply>) -> Self {
        let server = ModelServer::start(move |_, number| replies[number].clone()).await.unwrap();
        let provider = wire.provider(&server.url());
        Self { server, provider }
    }

    async fn ask(&self, request: Request) -> Outcome {
        let mut stream = MessageStream::open(&*self.provider, request, Cancel::never(), AT);
        let error = loop {
            match stream.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        Outcome { message: stream.message().unwrap(), error }
    }
}

/// The JSON body of a request.
pub(crate) async fn sent(wire: Wire, request: Request) -> serde_json::Value {
    let (_, requests) = ask(wire, Reply::events(": nothing\n\n"), request).await;
    requests.first().unwrap().json()
}

pub(crate) fn whole(message: AssistantMessage) -> Outcome {
    Outcome { message, error: None }
}

/// An interrupted answer with this content.
pub(crate) fn broken(content: Vec<AssistantBlock>, error: ProviderError) -> Outcome {
    let stop_reason = StopReason::Error;
    let message = AssistantMessage { stop_reason, ..answer(content, "") };
    Outcome { message, error: Some(error.into()) }
}

/// An error before the first piece: not even the model is known.
pub(crate) fn refused(error: ProviderError) -> Outcome {
    let mut outcome = broken(Vec::new(), error);
    outcome.message.model = None;
    outcome
}

/// A complete answer with the stop reason `raw`.
pub(crate) fn answer(content: Vec<AssistantBlock>, raw: &str) -> AssistantMessage {
    AssistantMessage {
        content,
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: raw.to_owned(),
        usage: Usage::default(),
        model: Some(model("openai/m")),
        timestamp: AT,
    }
}

pub(crate) fn usage(input: u64, output: u64, cached: Option<u64>) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: cached,
        cache_write_tokens: None,
    }
}

pub(crate) fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

pub(crate) fn text(text: &str) -> AssistantBlock {
    AssistantBlock::text(text)
}

pub(crate) fn thinking(text: &str) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingBlock { thinking: text.to_owned(), signature: None })
}

pub(crate) fn encrypted(kind: &str, json: &str) -> AssistantBlock {
    AssistantBlock::Opaque(OpaqueBlock {
        kind: kind.to_owned(),
        value: RawJson::parse(json).unwrap(),
    })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> AssistantBlock {
    called(id, name, ToolArguments::Object(RawJson::parse(arguments).unwrap()))
}

pub(crate) fn malformed_call(id: &str, name: &str, arguments: &str) -> AssistantBlock {
    called(id, name, ToolArguments::Malformed(arguments.to_owned()))
}

fn called(id: &str, name: &str, arguments: ToolArguments) -> AssistantBlock {
    let (id, name) = (ToolCallId::parse(id).unwrap(), name.to_owned());
    AssistantBlock::ToolCall(ToolCallBlock { id, name, arguments, signature: None })
}

pub(crate) fn result(id: &str, name: &str, content: Vec<InputBlock>) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: ToolCallId::parse(id).unwrap(),
        tool_name: name.to_owned(),
        content,
        is_error: false,
        timestamp: AT,
    })
}

pub(crate) fn requested(text: &str) -> Message {
    UserMessage::text(text, AT).into()
}

pub(crate) fn weather_tool() -> Arc<Tool> {
    Arc::new(Tool {
        name: "get_weather".to_owned(),
        description: "The weather in a city.".to_owned(),
        parameters: RawJson::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#)
            .unwrap(),
    })
}

pub(crate) fn hello() -> Request {
    conversation(vec![requested("hello")])
}

pub(crate) fn conversation(messages: Vec<Message>) -> Request {
    let messages = messages.into_iter().map(Arc::new).collect();
    Request { model: "m".to_owned(), messages, ..Request::default() }
}

/// An image.
pub(crate) fn picture() -> InputBlock {
    InputBlock::Image(antiphon_core::ImageBlock::new("image/png", b"pixels".to_vec()).unwrap())
}

/// The data URL of [`picture`].
pub(crate) const PICTURE_URL: &str = "data:image/png;base64,cGl4ZWxz";

pub(crate) fn protocol(message: &str) -> ProviderError {
    ProviderError::Protocol { message: message.to_owned() }
}
