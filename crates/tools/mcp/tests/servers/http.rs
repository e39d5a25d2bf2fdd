//! Servers at an address.

use std::time::{Duration, Instant};

use antiphon_core::port::ToolError;
use antiphon_mcp::{Mcp, McpOptions, ServerState};
use serde_json::{Value, json};

use crate::world::{
    HttpServer, START, call, config, names, only_text, prepared, ready, state, status, text, with,
};

fn with_token(server: &HttpServer, token: &str) -> Mcp {
    let environment = [("TOKEN".to_owned(), token.to_owned())].into();
    let servers = json!({"s": with(
        server.config(),
        json!({"bearer_token_env": "TOKEN", "headers": {"X-Team": "blue"}}),
    )});
    Mcp::new(
        config(servers),
        McpOptions { environment, workspace: None, cache_file: None, token_folder: None },
    )
}

#[tokio::test]
async fn both_kinds_of_answers_and_both_protocols_are_understood() {
    for modes in [&[][..], &["json"], &["no_stream"], &["modern"], &["modern", "json"]] {
        let server = HttpServer::start(modes);
        let mcp = ready(server.config()).await;
        assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi", "{modes:?}");
        let kinds = text(&mcp, "kinds", json!({})).await;
        assert!(kinds.contains("`hologram`"), "{kinds}");
    }
}

#[tokio::test]
async fn keys_are_sent_with_every_request_and_there_is_no_origin() {
    let server = HttpServer::start(&["key"]);
    let mcp = with_token(&server, "sesame");
    mcp.connect_all(START).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
    mcp.shutdown(Duration::from_secs(3)).await;
    let requests = server.requests().await;
    assert!(requests.iter().any(|request| request["verb"] == "DELETE"), "the session is ended");
    for request in requests {
        assert_eq!(request["headers"]["authorization"], "Bearer sesame", "{request}");
        assert_eq!(request["headers"]["x-team"], "blue");
        assert_eq!(request["headers"].get("origin"), None);
    }
    assert!(!format!("{mcp:?}").contains("sesame"));
}

#[tokio::test]
async fn a_missing_or_wrong_key_says_what_to_set() {
    let server = HttpServer::start(&["key"]);
    for (token, expected) in [("", "set the variable `TOKEN`"), ("wrong", "bearer_token_env")] {
        let mcp = with_token(&server, token);
        mcp.connect_all(START).await;
        let status = status(&mcp, "s");
        assert!(matches!(status.state, ServerState::Failed { .. }), "{status:?}");
        let reason = status.last_error.unwrap();
        assert!(reason.contains(expected) && !reason.contains("wrong"), "{reason}");
    }
}

#[tokio::test]
async fn redirects_lead_nowhere_else() {
    let server = HttpServer::start(&["moved"]);
    let mcp = with_token(&server, "sesame");
    mcp.connect_all(START).await;
    let reason = status(&mcp, "s").last_error.unwrap();
    assert!(reason.contains("another place"), "{reason}");

    let server = HttpServer::start(&["moved_here"]);
    let mcp = ready(server.config()).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
}

#[tokio::test]
async fn a_forgotten_session_is_begun_anew_without_a_word() {
    for modes in [&[][..], &["forgets_oddly"]] {
        let server = HttpServer::start(modes);
        let mcp = ready(server.config()).await;
        assert_eq!(text(&mcp, "forget", json!({})).await, "called forget");
        assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi", "{modes:?}");
        let requests = server.requests().await;
        let greetings = requests.iter().filter(|request| request["method"] == "initialize");
        assert_eq!(greetings.count(), 2);
        let calls: Vec<&Value> =
            requests.iter().filter(|request| request["method"] == "tools/call").collect();
        assert_ne!(
            calls[0]["headers"]["mcp-session-id"],
            calls[calls.len() - 1]["headers"]["mcp-session-id"]
        );
    }
}

#[tokio::test]
async fn answers_without_an_end_or_a_meaning_fail_their_call_only() {
    let server = HttpServer::start(&[]);
    let mcp = ready(with(server.config(), json!({"timeout_s": 20}))).await;
    let start = Instant::now();
    for (tool, expected) in [
        ("endless", "ask for less"),
        ("huge_json", "ask for less"),
        ("drop", "outcome unknown"),
        ("nonsense", "not a protocol message"),
        ("unavailable", "HTTP 503: come back later"),
    ] {
        let result_text = match call(&mcp, tool, json!({})).await {
            Ok(result) => {
                assert!(result.is_error, "{tool}: {result:?}");
                only_text(&result)
            }
            Err(error @ ToolError::Unavailable { .. }) => error.to_string(),
            Err(error) => panic!("{tool}: {error}"),
        };
        assert!(result_text.contains(expected), "{tool}: {result_text}");
        assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi", "after {tool}");
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_server_that_hangs_or_is_not_there_does_not_delay_others() {
    let hanging = HttpServer::start(&["hang"]);
    let good = HttpServer::start(&[]);
    let mcp = prepared(json!({
        "s": good.config(),
        "hangs": with(hanging.config(), json!({"start_timeout_s": 1})),
    }));
    let start = Instant::now();
    mcp.connect_all(START).await;
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(matches!(state(&mcp, "hangs"), ServerState::Failed { .. }));
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
    drop(good);
    let gone = call(&mcp, "echo", json!({"text": "hi"})).await;
    let Err(ToolError::Unavailable { reason, .. }) = gone else { panic!("{gone:?}") };
    assert!(reason.contains("cannot be reached"), "{reason}");
    assert!(!names(&mcp).is_empty());
}

#[tokio::test]
async fn a_stream_that_always_ends_is_not_asked_for_all_the_time() {
    let server = HttpServer::start(&["short_stream"]);
    let mcp = ready(server.config()).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
    let requests = server.requests().await;
    let streams = requests.iter().filter(|request| request["verb"] == "GET").count();
    assert!((1..=3).contains(&streams), "{streams}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_resumed() {
    for modes in [&[][..], &["no_stream"]] {
        let server = HttpServer::start(modes);
        let mcp = ready(server.config()).await;
        assert_eq!(text(&mcp, "cut_off", json!({})).await, "resumed", "{modes:?}");
    }
}
