//! Keys reach the wire and nothing else.

use antiphon_core::{Piece, ProviderError};
use antiphon_model_server::Reply;
use secrecy::SecretString;

use crate::world::{Echo, echoed, post, read, server, transport};

#[tokio::test]
async fn a_key_is_sent_without_surrounding_white_space() {
    let cases = [("s3cret", "Bearer s3cret"), (" s3cret\n", "Bearer s3cret")];
    for (key, sent) in cases {
        let server = server(Reply::events("data: done\n\n")).await;
        let post = post(&server.url()).secret("authorization", "Bearer ", &SecretString::from(key));
        assert_eq!(read(transport().stream(post, Echo)).await, [Ok(Piece::Done)]);
        assert_eq!(server.requests()[0].header("authorization"), Some(sent));
    }
}

#[tokio::test]
async fn a_key_that_is_invalid_in_a_header_is_omitted() {
    let server = server(Reply::events("data: done\n\n")).await;
    let post = post(&server.url()).secret("x-api-key", "", &SecretString::from("s3\ncret"));
    assert_eq!(read(transport().stream(post, Echo)).await, [Ok(Piece::Done)]);
    assert_eq!(server.requests()[0].header("x-api-key"), None);
}

#[test]
fn a_request_does_not_show_its_key_or_its_body() {
    let post = post("http://localhost/v1").header("x-version", "1").secret(
        "authorization",
        "Bearer ",
        &SecretString::from("s3cret"),
    );
    assert_eq!(
        format!("{post:?}"),
        "Post { endpoint: http://localhost/v1, \
         headers: {\"x-version\": \"1\", \"authorization\": Sensitive}, body_bytes: 2, .. }"
    );
}

const KEY: &str = "sk-proj-0123456789";

async fn received(reply: Reply) -> Vec<Result<Piece, ProviderError>> {
    let server = server(reply).await;
    let key = SecretString::from(KEY);
    let post = post(&server.url()).secret("authorization", "Bearer ", &key);
    let post = post.secret("x-short", "", &SecretString::from("test"));
    read(transport().stream(post, Echo)).await
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_redacted() {
    let reported = format!("a test: Incorrect API key provided: {KEY}. {KEY}");
    let kept = "a test: Incorrect API key provided: [redacted]. [redacted]";
    let server_error = |status, message: &str| {
        let message = format!("None {message}");
        [Err(ProviderError::Server { status, message, retry_after: None })]
    };
    assert_eq!(received(Reply::json(401, reported.clone())).await, server_error(401, kept));
    // With the wrong status, and in the middle of a stream.
    let document = format!("{{\"error\": \"{reported}\"}}");
    let shown = format!("{{\"error\": \"{kept}\"}}");
    assert_eq!(received(Reply::json(200, document)).await, server_error(200, &shown));
    let events = Reply::events(format!("data: {reported}\n\ndata: done\n\n"));
    assert_eq!(received(events).await, [Ok(echoed("message", kept)), Ok(Piece::Done)]);
    let server = server(Reply::json(403, reported)).await;
    let post = post(&server.url()).secret("authorization", "Bearer ", &SecretString::from(KEY));
    let message = format!("status 403: {kept}");
    assert_eq!(transport().get(post).await, Err(ProviderError::Permission { message }));
}
