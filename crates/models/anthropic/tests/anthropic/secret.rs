//! The key reaches the server and is shown nowhere.

use antiphon_core::{Cancel, MessageStream};
use antiphon_model_server::Reply;

use crate::world::{AT, config, provider, request, server, user, whole};

#[tokio::test]
async fn the_key_and_the_version_are_sent_as_headers() {
    let server = server(Reply::events(whole(&[]))).await;
    let provider = provider(config(&server, None));
    let stream = MessageStream::open(&provider, request(vec![user("hi")]), Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    let requests = server.requests();
    let header = |name| requests[0].header(name);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(
        ["x-api-key", "anthropic-version", "authorization"].map(header),
        [Some("s3cret"), Some("2023-06-01"), None]
    );
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let server = server(Reply::events(whole(&[]))).await;
    let provider =
        provider(antiphon_anthropic::AnthropicConfig { api_key: None, ..config(&server, None) });
    let stream = MessageStream::open(&provider, request(vec![user("hi")]), Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    assert_eq!(server.requests()[0].header("x-api-key"), None);
}

#[tokio::test]
async fn the_key_is_not_shown() {
    let server = server(Reply::events("")).await;
    let config = config(&server, None);
    let shown = format!("{config:?} {:?}", provider(config.clone()));
    assert!(shown.contains("REDACTED") && !shown.contains("s3cret"), "{shown}");
}
