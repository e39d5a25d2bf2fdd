//! A redirect is not followed: it would send the key to another server.

use antiphon_core::ProviderError;
use antiphon_model_server::Reply;
use secrecy::SecretString;

use crate::world::{Echo, post, read, server, transport};

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_is_sent_nowhere_else() {
    for status in [301, 302, 303, 307, 308] {
        let thief = server(Reply::events("data: a\n\n")).await;
        let first = server(Reply::json(status, "").header("location", &thief.url())).await;
        let post = post(&first.url()).secret("x-api-key", "", &SecretString::from("s3cret"));
        let error =
            ProviderError::Server { status, message: "None ".to_owned(), retry_after: None };
        assert_eq!(read(transport().stream(post, Echo)).await, [Err(error)], "{status}");
        assert_eq!(first.requests()[0].header("x-api-key"), Some("s3cret"));
        assert_eq!(thief.connections(), 0);
    }
}
