//! Error responses and their meaning.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_server::Reply;
use serde_json::{Value, json};

use crate::world::answer;

async fn failure(reply: Reply) -> ProviderError {
    answer(reply).await.1.expect("a failure")
}

fn body(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

fn error(code: u16, status: &str, message: &str) -> Reply {
    Reply::json(code, body(code, status, message, json!([])).to_string())
}

#[tokio::test]
async fn each_kind_of_error_has_its_type() {
    let message = || "why".to_owned();
    let retry_after = None;
    let server = |status| ProviderError::Server { status, message: message(), retry_after };
    let cases = [
        (400, "INVALID_ARGUMENT", ProviderError::InvalidRequest { message: message() }),
        (400, "OUT_OF_RANGE", ProviderError::InvalidRequest { message: message() }),
        (400, "FAILED_PRECONDITION", ProviderError::Permission { message: message() }),
        (401, "UNAUTHENTICATED", ProviderError::Authentication { message: message() }),
        (403, "PERMISSION_DENIED", ProviderError::Permission { message: message() }),
        (404, "NOT_FOUND", ProviderError::NotFound { message: message() }),
        (409, "ABORTED", server(409)),
        (429, "RESOURCE_EXHAUSTED", ProviderError::RateLimited { message: message(), retry_after }),
        (499, "CANCELLED", server(499)),
        (500, "INTERNAL", server(500)),
        (500, "UNKNOWN", server(500)),
        (503, "UNAVAILABLE", ProviderError::Overloaded { message: message(), retry_after }),
        (504, "DEADLINE_EXCEEDED", server(504)),
        // The HTTP status decides where the word is unknown or absent.
        (404, "NEW", ProviderError::NotFound { message: message() }),
        (429, "", ProviderError::RateLimited { message: message(), retry_after }),
    ];
    for (code, status, expected) in cases {
        assert_eq!(failure(error(code, status, "why")).await, expected, "{code} {status}");
    }
}

#[tokio::test]
async fn a_wrong_key_and_a_missing_key_are_distinguished_from_an_invalid_request() {
    let invalid = body(
        400,
        "INVALID_ARGUMENT",
        "API key not valid.",
        json!([
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
            {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US"},
        ]),
    );
    let absent = "Method doesn't allow unregistered callers (callers without established \
        identity). Please use API Key or other form of API consumer identity to call this API.";
    let cases = [
        (Reply::json(400, invalid.to_string()), "API key not valid."),
        (error(403, "PERMISSION_DENIED", absent), absent),
    ];
    for (reply, message) in cases {
        let expected = ProviderError::Authentication { message: message.to_owned() };
        assert_eq!(failure(reply).await, expected);
    }
}

#[tokio::test]
async fn a_too_long_conversation_is_distinguished_from_an_invalid_request() {
    let cases = [
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200293) exceeds the maximum number of \
            tokens allowed (1048576).",
        ),
        (400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
        (500, "INTERNAL", "The input context is too long."),
    ];
    for (code, status, message) in cases {
        let expected = ProviderError::ContextOverflow { message: message.to_owned() };
        assert_eq!(failure(error(code, status, message)).await, expected);
    }
}

#[tokio::test]
async fn a_busy_provider_gives_a_retry_delay() {
    let retry_info = |delay: &str| {
        body(
            429,
            "RESOURCE_EXHAUSTED",
            "why",
            json!([
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            ]),
        )
    };
    let reply = |body: Value| Reply::json(429, body.to_string());
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    let cases = [
        (reply(retry_info("34s")), seconds(34.0)),
        (reply(retry_info("34.074824224s")), seconds(34.074_824_224)),
        (reply(retry_info("34s")).header("retry-after", "5"), seconds(34.0)),
        (reply(retry_info("soon")).header("retry-after", "5"), seconds(5.0)),
        (error(429, "RESOURCE_EXHAUSTED", "why").header("retry-after", "5"), seconds(5.0)),
        (reply(retry_info("-1s")), None),
    ];
    for (reply, retry_after) in cases {
        let expected = ProviderError::RateLimited { message: "why".to_owned(), retry_after };
        assert_eq!(failure(reply.clone()).await, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn an_error_may_come_in_an_array() {
    let body = json!([body(404, "NOT_FOUND", "models/x is not found", json!([]))]).to_string();
    let expected = ProviderError::NotFound { message: "models/x is not found".to_owned() };
    assert_eq!(failure(Reply::json(404, body)).await, expected);
}

#[tokio::test]
async fn an_error_without_a_message_is_described() {
    let empty = r#"{"error":{"status":"UNAUTHENTICATED"}}"#;
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
            Reply::json(401, empty),
            ProviderError::Authentication { message: format!("status 401: {empty}") },
        ),
        (
            Reply::json(422, "{}").header("x-should-retry", "true"),
            ProviderError::Server {
                status: 422,
                message: "status 422: {}".to_owned(),
                retry_after: None,
            },
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(failure(reply).await, expected);
    }
}
