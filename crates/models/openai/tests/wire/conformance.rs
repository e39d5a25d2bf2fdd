//! The conformance suite of providers on both wires.

mod chat;
mod responses;

use std::sync::LazyLock;

use antiphon_conformance::provider::{Refusal, check};
use antiphon_model_server::{ModelServer, Reply, ServedWire};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use serde_json::{Value, json};

use chat::Chunks;
use responses::Items;

/// Shared: loading the system's certificates takes longer than a check.
static TRANSPORT: LazyLock<Transport> =
    LazyLock::new(|| Transport::new(&TransportConfig::default()).unwrap());

#[tokio::test]
async fn chat_completions_passes_the_conformance_suite() {
    let wire = ServedWire::<Chunks, _>::new(|server| {
        let (name, base_url) = ("openai".to_owned(), address(server));
        let config = ChatConfig { name, base_url, api_key: None, quirks: ChatQuirks::default() };
        ChatCompletions::new(config, TRANSPORT.clone())
    });
    let passed = check(&wire).await.unwrap();
    assert_eq!(passed.skipped_checks(), ["a_signature_is_kept"]);
}

#[tokio::test]
async fn responses_passes_the_conformance_suite() {
    let wire = ServedWire::<Items, _>::new(|server| {
        let (name, base_url) = ("openai".to_owned(), address(server));
        let quirks = ResponsesQuirks::default();
        let config = ResponsesConfig { name, base_url, api_key: None, quirks };
        Responses::new(config, TRANSPORT.clone())
    });
    let passed = check(&wire).await.unwrap();
    assert_eq!(
        passed.skipped_checks(),
        ["a_signature_is_kept", "the_usage_of_an_interrupted_answer_is_kept"]
    );
}

fn address(server: &ModelServer) -> Endpoint {
    Endpoint::parse(&server.url()).unwrap().at("/v1")
}

/// The error response of both wires.
fn refused(refusal: Refusal) -> Reply {
    let status = match refusal {
        Refusal::InvalidRequest | Refusal::ContextOverflow => 400,
        Refusal::Authentication => 401,
        Refusal::Permission => 403,
        Refusal::NotFound => 404,
        Refusal::RateLimited { .. } => 429,
        Refusal::Overloaded => 503,
        Refusal::Server => 500,
    };
    let reply = Reply::json(status, json!({ "error": error(refusal) }).to_string());
    match refusal {
        Refusal::RateLimited { retry_after } => {
            reply.header("retry-after", &retry_after.as_secs().to_string())
        }
        Refusal::InvalidRequest
        | Refusal::ContextOverflow
        | Refusal::Authentication
        | Refusal::Permission
        | Refusal::NotFound
        | Refusal::Overloaded
        | Refusal::Server => reply,
    }
}

fn error(refusal: Refusal) -> Value {
    let (kind, code, message) = match refusal {
        Refusal::InvalidRequest => ("invalid_request_error", None, "Invalid value: 'tool'."),
        Refusal::ContextOverflow => (
            "invalid_request_error",
            Some("context_length_exceeded"),
            "Your input exceeds the context window of this model.",
        ),
        Refusal::Authentication => {
            ("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided: sk-0.")
        }
        Refusal::Permission => {
            ("invalid_request_error", None, "You have insufficient permissions for this operation.")
        }
        Refusal::NotFound => {
            ("invalid_request_error", Some("model_not_found"), "The model `m` does not exist.")
        }
        Refusal::RateLimited { .. } => {
            ("tokens", Some("rate_limit_exceeded"), "Rate limit reached for requests per minute.")
        }
        Refusal::Overloaded => {
            ("server_error", Some("server_is_overloaded"), "The engine is currently overloaded.")
        }
        Refusal::Server => ("server_error", None, "The server had an error."),
    };
    json!({"message": message, "type": kind, "param": null, "code": code})
}
