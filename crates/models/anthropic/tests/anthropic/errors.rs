//! Error responses and their meaning.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_server::Reply;

use crate::world::answer;

async fn failure(reply: Reply) -> ProviderError {
    answer(reply).await.1.expect("a failure")
}

fn error(status: u16, kind: &str, message: &str) -> Reply {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
    );
    Reply::json(status, body)
}

#[tokio::test]
async fn each_kind_of_error_has_its_type() {
    let message = || "why".to_owned();
    let (retry_after, server) =
        (None, |status| ProviderError::Server { status, message: message(), retry_after: None });
    let cases = [
        (400, "invalid_request_error", ProviderError::InvalidRequest { message: message() }),
        (401, "authentication_error", ProviderError::Authentication { message: message() }),
        (402, "billing_error", ProviderError::Permission { message: message() }),
        (403, "permission_error", ProviderError::Permission { message: message() }),
        (404, "not_found_error", ProviderError::NotFound { message: message() }),
        (409, "conflict_error", server(409)),
        (413, "request_too_large", ProviderError::ContextOverflow { message: message() }),
        (429, "rate_limit_error", ProviderError::RateLimited { message: message(), retry_after }),
        (500, "api_error", server(500)),
        (504, "timeout_error", server(504)),
        (529, "overloaded_error", ProviderError::Overloaded { message: message(), retry_after }),
        // The status decides where the kind is unknown.
        (401, "new_error", ProviderError::Authentication { message: message() }),
        (503, "new_error", ProviderError::Overloaded { message: message(), retry_after }),
    ];
    for (status, kind, expected) in cases {
        assert_eq!(failure(error(status, kind, "why")).await, expected, "{status} {kind}");
    }
}

#[tokio::test]
async fn a_too_long_conversation_is_distinguished_from_an_invalid_request() {
    let cases = [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "The request exceeds the context window of the model",
    ];
    for message in cases {
        let expected = ProviderError::ContextOverflow { message: message.to_owned() };
        assert_eq!(failure(error(400, "invalid_request_error", message)).await, expected);
    }
}

#[tokio::test]
async fn a_busy_provider_gives_a_retry_delay() {
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    let cases = [
        ("retry-after", "30", seconds(30.0)),
        ("retry-after-ms", "250", seconds(0.25)),
        ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", None),
    ];
    for (name, value, retry_after) in cases {
        let message = "Slow down".to_owned();
        for (status, kind, expected) in [
            (
                429,
                "rate_limit_error",
                ProviderError::RateLimited { message: message.clone(), retry_after },
            ),
            (
                529,
                "overloaded_error",
                ProviderError::Overloaded { message: message.clone(), retry_after },
            ),
            (
                500,
                "api_error",
                ProviderError::Server { status: 500, message: message.clone(), retry_after },
            ),
        ] {
            let reply = error(status, kind, &message).header(name, value);
            assert_eq!(failure(reply).await, expected, "{status} {name}: {value}");
        }
    }
}

#[tokio::test]
async fn a_retryable_refusal_is_a_server_error() {
    let reply = error(422, "new_error", "why").header("x-should-retry", "true");
    let expected =
        ProviderError::Server { status: 422, message: "why".to_owned(), retry_after: None };
    assert_eq!(failure(reply).await, expected);
}

#[tokio::test]
async fn an_error_without_a_message_is_described() {
    let cases = [
        (
            Reply::json(400, ""),
            ProviderError::InvalidRequest { message: "status 400 without a body".to_owned() },
        ),
        (
            Reply::json(404, "nope"),
            ProviderError::NotFound { message: "status 404: nope".to_owned() },
        ),
        (
            Reply::json(401, r#"{"error":{"type":"authentication_error"}}"#),
            ProviderError::Authentication {
                message: r#"status 401: {"error":{"type":"authentication_error"}}"#.to_owned(),
            },
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(failure(reply).await, expected);
    }
}
