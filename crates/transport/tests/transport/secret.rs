//! Keys reach the wire and nothing else.

use antiphon_core::Piece;
use antiphon_model_server::Reply;
use secrecy::SecretString;

use crate::world::{Echo, post, read, server, transport};

#[tokio::test]
async fn a_key_is_sent_without_the_white_space_around_it() {
    let cases = [("s3cret", "Bearer s3cret"), (" s3cret\n", "Bearer s3cret")];
    for (key, sent) in cases {
        let server = server(Reply::events("data: done\n\n")).await;
        let post = post(&server.url()).secret("authorization", "Bearer ", &SecretString::from(key));
        assert_eq!(read(transport().stream(post, Echo)).await, [Ok(Piece::Done)]);
        assert_eq!(server.requests()[0].header("authorization"), Some(sent));
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_left_out() {
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
         headers: {\"x-version\": \"1\", \"authorization\": Sensitive}, body_bytes: 2 }"
    );
}
