//! The key reaches the server and is shown nowhere.

use antiphon_core::{Cancel, MessageStream};
use antiphon_gemini::{DEFAULT_URL, GeminiConfig};
use antiphon_model_server::Reply;
use antiphon_model_transport::Endpoint;

use crate::world::{AT, config, end, provider, request, server, user};

#[tokio::test]
async fn the_key_is_sent_as_a_header_and_not_in_the_address() {
    let server = server(Reply::events(end("STOP"))).await;
    let provider = provider(config(&server));
    let stream = MessageStream::open(&provider, request(vec![user("hi")]), Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    let requests = server.requests();
    assert_eq!(
        (requests[0].method.as_str(), requests[0].path.as_str()),
        ("POST", "/v1beta/models/gemini-3:streamGenerateContent?alt=sse")
    );
    assert_eq!(requests[0].header("x-goog-api-key"), Some("s3cret"));
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let server = server(Reply::events(end("STOP"))).await;
    let provider = provider(GeminiConfig { api_key: None, ..config(&server) });
    let stream = MessageStream::open(&provider, request(vec![user("hi")]), Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    assert_eq!(server.requests()[0].header("x-goog-api-key"), None);
}

#[tokio::test]
async fn the_key_is_not_shown() {
    let server = server(Reply::events("")).await;
    let config = config(&server);
    let shown = format!("{config:?} {:?}", provider(config.clone()));
    assert!(shown.contains("REDACTED") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn the_default_address_is_valid() {
    assert_eq!(
        Endpoint::parse(DEFAULT_URL).map(|url| url.to_string()),
        Ok(format!("{DEFAULT_URL}/"))
    );
}
