//! Servers that talk too much. Each floods while another one works.

use std::time::{Duration, Instant};

use antiphon_mcp::ServerState;
use serde_json::json;

use crate::world::{START, call_named, hostile, names, only_text, prepared, state, until};

/// How fast a call of the other server has to be meanwhile.
const PROMPT: Duration = Duration::from_secs(5);

async fn floods_only_itself(what: &str, stays_usable: bool) {
    let mcp = prepared(json!({"bad": hostile(&[]), "good": hostile(&[])}));
    mcp.connect_all(START).await;
    let flooding = call_named(&mcp, "mcp__bad__flood", json!({"what": what})).await.unwrap();
    assert_eq!(only_text(&flooding), "flooding");
    let before = resident_bytes();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(700) {
        let call_start = Instant::now();
        let result = call_named(&mcp, "mcp__good__echo", json!({"text": "calm"})).await.unwrap();
        assert_eq!(only_text(&result), "calm");
        assert!(call_start.elapsed() < PROMPT);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{what}: {grown} bytes");
    if stays_usable {
        let own = call_named(&mcp, "mcp__bad__echo", json!({"text": "still here"})).await.unwrap();
        assert_eq!(only_text(&own), "still here");
    }
    let end = Instant::now();
    mcp.shutdown(Duration::from_secs(3)).await;
    assert!(end.elapsed() < Duration::from_secs(6));
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn endless_notifications_affect_only_their_server() {
    floods_only_itself("notifications", true).await;
}

#[tokio::test]
async fn endless_tool_changes_affect_only_their_server() {
    floods_only_itself("changes", true).await;
}

#[tokio::test]
async fn endless_requests_affect_only_their_server() {
    floods_only_itself("requests", true).await;
}

#[tokio::test]
async fn endless_garbage_affect_only_their_server() {
    floods_only_itself("garbage", true).await;
}

#[tokio::test]
async fn endless_answers_to_nothing_affect_only_their_server() {
    floods_only_itself("answers", true).await;
}

#[tokio::test]
async fn endless_errors_affect_only_their_server() {
    floods_only_itself("stderr", true).await;
}

#[tokio::test]
async fn a_line_without_an_end_is_the_end_of_its_server_only() {
    floods_only_itself("line", false).await;
    let mcp = prepared(json!({"bad": hostile(&[])}));
    mcp.connect_all(START).await;
    call_named(&mcp, "mcp__bad__flood", json!({"what": "line"})).await.unwrap();
    until("its end", || state(&mcp, "bad") == ServerState::Idle).await;
    let again = call_named(&mcp, "mcp__bad__echo", json!({"text": "new"})).await.unwrap();
    assert_eq!(only_text(&again), "new");
}

#[tokio::test]
async fn noise_before_the_first_word_does_not_matter() {
    let mcp = prepared(json!({"s": hostile(&["stderr_start", "banner"])}));
    mcp.connect_all(START).await;
    assert!(!names(&mcp).is_empty(), "{:?}", mcp.status());
}
