//! Error responses, which both wires share.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_server::Reply;

use crate::world::{Case, Wire, check, refused};

const WAIT: Option<Duration> = Some(Duration::from_secs(7));

fn error(code: &str, message: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"x","param":null,"code":"{code}"}}}}"#)
}

async fn check_both(cases: impl Fn() -> Vec<Case>) {
    check(Wire::chat(), cases()).await;
    check(Wire::responses(), cases()).await;
}

fn case(name: &'static str, status: u16, body: &str, error: ProviderError) -> Case {
    let reply = Reply::json(status, body).header("retry-after", "7");
    Case { name, reply, outcome: refused(error) }
}

#[tokio::test]
async fn each_status_has_its_error_type() {
    let server =
        |status| ProviderError::Server { status, message: "No.".to_owned(), retry_after: WAIT };
    let message = || "No.".to_owned();
    let cases = || {
        vec![
            case(
                "400",
                400,
                &error("", "No."),
                ProviderError::InvalidRequest { message: message() },
            ),
            case(
                "401",
                401,
                &error("", "No."),
                ProviderError::Authentication { message: message() },
            ),
            case("402", 402, &error("", "No."), ProviderError::Permission { message: message() }),
            case("403", 403, &error("", "No."), ProviderError::Permission { message: message() }),
            case("404", 404, &error("", "No."), ProviderError::NotFound { message: message() }),
            case("408", 408, &error("", "No."), server(408)),
            case(
                "413",
                413,
                &error("", "No."),
                ProviderError::ContextOverflow { message: message() },
            ),
            case(
                "422",
                422,
                &error("", "No."),
                ProviderError::InvalidRequest { message: message() },
            ),
            case(
                "429",
                429,
                &error("", "No."),
                ProviderError::RateLimited { message: message(), retry_after: WAIT },
            ),
            case("500", 500, &error("", "No."), server(500)),
            case("502", 502, &error("", "No."), server(502)),
            case(
                "503",
                503,
                &error("", "No."),
                ProviderError::Overloaded { message: message(), retry_after: WAIT },
            ),
        ]
    };
    check_both(cases).await;
}

#[tokio::test]
async fn a_code_takes_precedence_over_the_status() {
    let message = || "No.".to_owned();
    let cases = || {
        vec![
            case(
                "a long conversation",
                400,
                &error("context_length_exceeded", "No."),
                ProviderError::ContextOverflow { message: message() },
            ),
            case(
                "an empty purse",
                429,
                &error("insufficient_quota", "No."),
                ProviderError::Permission { message: message() },
            ),
            case(
                "a wrong key",
                400,
                &error("invalid_api_key", "No."),
                ProviderError::Authentication { message: message() },
            ),
            case(
                "a wrong model",
                400,
                &error("model_not_found", "No."),
                ProviderError::NotFound { message: message() },
            ),
            case(
                "haste",
                400,
                &error("rate_limit_exceeded", "No."),
                ProviderError::RateLimited { message: message(), retry_after: WAIT },
            ),
            case(
                "a crowd",
                500,
                &error("server_is_overloaded", "No."),
                ProviderError::Overloaded { message: message(), retry_after: WAIT },
            ),
        ]
    };
    check_both(cases).await;
}

#[tokio::test]
async fn a_too_long_conversation_is_recognized_by_known_phrases() {
    let words = [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "request (3031 tokens) exceeds the available context size (1024 tokens), try increasing it",
        "Your input exceeds the context window of this model.",
        "the input length exceeds the context length",
        "The model is loaded with context length of only 4096 tokens, which is not enough.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096.",
        "Request too large for m on tokens per min (TPM): Limit 6000, Requested 9000.",
    ];
    let overflow = |text: &str| ProviderError::ContextOverflow { message: text.to_owned() };
    for status in [400, 429, 500] {
        check_both(|| {
            words.map(|text| case(text, status, &error("", text), overflow(text))).into()
        })
        .await;
    }
}

#[tokio::test]
async fn the_message_is_found_at_each_position() {
    let no = || ProviderError::InvalidRequest { message: "No.".to_owned() };
    let invalid = |message: &str| ProviderError::InvalidRequest { message: message.to_owned() };
    let page = "the address answered with a web page (status 400): check base_url and proxy";
    let cases = || {
        vec![
            case("as text", 400, r#"{"error":"No."}"#, no()),
            case(
                "in a list",
                400,
                r#"[{"error":{"code":400,"message":"No.","status":"INVALID_ARGUMENT"}}]"#,
                no(),
            ),
            case(
                "at the top",
                400,
                r#"{"object":"error","message":"No.","type":"BadRequestError","code":400}"#,
                no(),
            ),
            case("as a detail", 400, r#"{"detail":"No."}"#, no()),
            case(
                "as a list of details",
                422,
                r#"{"detail":[{"loc":["body"],"msg":"No.","type":"missing"}]}"#,
                no(),
            ),
            case("as details of a message", 422, r#"{"message":{"detail":[{"msg":"No."}]}}"#, no()),
            case("nowhere", 400, "", invalid("status 400 without a body")),
            case("as plain text", 400, "No.", invalid("status 400: No.")),
            case("as other JSON", 400, r#"{"ok":false}"#, invalid(r#"status 400: {"ok":false}"#)),
            case("on a web page", 400, "<html>No.</html>", invalid(page)),
        ]
    };
    check_both(cases).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let message = "the address redirects (status 302): check base_url".to_owned();
    let moved = || {
        let reply = Reply::json(302, "").header("location", "http://127.0.0.1:9/");
        let outcome = refused(ProviderError::NotFound { message: message.clone() });
        vec![Case { name: "302", reply, outcome }]
    };
    check_both(moved).await;
}

#[tokio::test]
async fn a_document_instead_of_a_stream_is_a_descriptive_error() {
    let protocol = |message: &str| ProviderError::Protocol { message: message.to_owned() };
    let limited = ProviderError::RateLimited { message: "Slow.".to_owned(), retry_after: None };
    let nothing = ProviderError::Server {
        status: 200,
        message: "it answered with nothing: check base_url".to_owned(),
        retry_after: None,
    };
    let page = ProviderError::Connection {
        message: "the address answered with a web page, as a network with a login page does: check the network, \
                  base_url and proxy"
            .to_owned(),
    };
    let page_as_stream = page.clone();
    let whole = r#"{"status":"completed","error":null,"output":[]}"#;
    let whole_answer = protocol(&format!("status 200: {whole}"));
    let html = |body: &str| Reply {
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        ..Reply::events(body)
    };
    let case =
        |name, reply, error: &ProviderError| Case { name, reply, outcome: refused(error.clone()) };
    let slow = r#"{"error":{"message":"Slow.","code":429}}"#;
    let cases = || {
        vec![
            case("an answer in one piece", Reply::json(200, whole), &whole_answer),
            case("an error with a status of its own", Reply::json(200, slow), &limited),
            case("a page", html("<p>Log in</p>"), &page),
            case("a page as a stream", Reply::events("<!DOCTYPE html><p>"), &page_as_stream),
            case("nothing", Reply::events(""), &nothing),
            case("comments", Reply::events(": ping\n\n: ping\n\n"), &nothing),
        ]
    };
    check_both(cases).await;
}
