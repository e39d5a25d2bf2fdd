//! A real wire, recorded once and replayed without it.

use antiphon_anthropic::{Anthropic, AnthropicConfig};
use antiphon_core::{AssistantMessage, RawJson, Request, StreamError, Tool};
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};

use crate::world::{RecordingPath, message, request};

const KEY: &str = "sk-ant-api03-KEYKEYKEYKEYKEYKEY";

const WORDS: &str = r#"data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, é."}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"ping"}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"abc"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"ls","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"/\", \"n\": 1.0}"}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}

"#;

const REFUSAL: &str =
    r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;

async fn server() -> ModelServer {
    let server = ModelServer::start(|_, number| match number {
        1 => Reply::json(429, REFUSAL).header("retry-after-ms", "1500"),
        2 => Reply::events(&WORDS[..400]),
        _ => Reply::events(WORDS).split(7),
    });
    server.await.expect("a server")
}

/// Four turns: an answer, a refusal, an interrupted answer, and an answer to a conversation.
async fn turns(
    provider: &impl antiphon_core::Provider,
) -> Vec<(AssistantMessage, Option<StreamError>)> {
    let tool = Tool {
        name: "ls".to_owned(),
        description: "Lists.".to_owned(),
        parameters: RawJson::parse(r#"{"type": "object"}"#).expect("JSON"),
    };
    let first = Request { tools: vec![tool.into()], ..request("look") };
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(message(provider, first.clone()).await);
    }
    let mut second = first;
    second.messages.push(outcomes[0].0.clone().into());
    outcomes.push(message(provider, second).await);
    outcomes
}

#[tokio::test]
async fn a_replay_equals_the_recorded_server() {
    let server = server().await;
    let config = AnthropicConfig {
        name: "anthropic".to_owned(),
        base_url: Endpoint::parse(&server.url()).expect("an address"),
        api_key: Some(KEY.into()),
        cache: None,
    };
    let transport = Transport::new(&TransportConfig::default()).expect("a transport");
    let place = RecordingPath::new();
    let provider = place.recorder(Anthropic::new(config, transport));
    let live = turns(&provider).await;
    assert_eq!((provider.failure(), server.served()), (None, 4));
    let ends: Vec<bool> = live.iter().map(|(_, failure)| failure.is_none()).collect();
    assert_eq!(ends, [true, false, false, true]);
    drop((provider, server));
    assert_eq!(turns(&place.replay()).await, live);
    assert!(!place.content().contains("KEYKEY"));
}
