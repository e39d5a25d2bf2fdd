//! One call: its arguments, its time, its end.

use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{RawJson, ToolResult};
use antiphon_mcp::ServerState;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{call, hostile, listening, only_text, ready, state, status, text, until, with};

#[tokio::test]
async fn arguments_are_checked_here_and_reach_the_server_as_they_were_written() {
    let mcp = ready(hostile(&[])).await;
    let wrong = call(&mcp, "echo", json!({"text": 7})).await.unwrap_err();
    let ToolError::InvalidArguments { tool, reason } = wrong else { panic!("{wrong}") };
    assert_eq!(tool, "mcp__s__echo");
    assert!(reason.contains("`/text`"), "{reason}");

    let written = r#"{"value":[123456789012345678901234567890,1.0,"\u00e4"]}"#;
    let arguments = RawJson::parse(written).unwrap();
    let context = ToolContext::trial(Cancel::never());
    let result = mcp.execute("mcp__s__raw", &arguments, context).await.unwrap();
    assert!(only_text(&result).contains(&format!(r#""arguments":{written}"#)));
}

#[tokio::test]
async fn failures_are_results_that_the_model_reads() {
    let mcp = ready(hostile(&[])).await;
    let failed = call(&mcp, "fail", json!({})).await.unwrap();
    assert_eq!(failed, ToolResult::failed("it did not work"));
    let error = call(&mcp, "error", json!({})).await.unwrap();
    assert!(error.is_error && only_text(&error).contains("it blew up"), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_shown_is_described() {
    let mcp = ready(hostile(&[])).await;
    let shown = text(&mcp, "kinds", json!({})).await;
    assert!(shown.starts_with("known\n"), "{shown}");
    assert!(shown.contains("`hologram`") && shown.contains("`image`"), "{shown}");
}

#[tokio::test]
async fn the_first_of_two_answers_counts_and_the_second_is_dropped() {
    let mcp = ready(hostile(&[])).await;
    assert_eq!(text(&mcp, "twice", json!({})).await, "first");
    assert_eq!(text(&mcp, "echo", json!({"text": "mine"})).await, "mine");
}

#[tokio::test]
async fn garbage_between_messages_is_ignored() {
    let mcp = ready(hostile(&["banner"])).await;
    assert_eq!(text(&mcp, "garbage", json!({})).await, "after the garbage");
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_at_once_and_no_other() {
    let mcp = ready(hostile(&[])).await;
    let start = Instant::now();
    let (huge, slept) = tokio::join!(
        call(&mcp, "huge", json!({"bytes": 10_000_000})),
        call(&mcp, "sleep", json!({"seconds": 0.3})),
    );
    let huge = huge.unwrap();
    assert!(huge.is_error && only_text(&huge).contains("ask for less"), "{huge:?}");
    assert_eq!(only_text(&slept.unwrap()), "slept");
    assert!(start.elapsed() < Duration::from_secs(20));

    let large = call(&mcp, "huge", json!({"bytes": 5_000_000})).await.unwrap();
    assert!(!large.is_error && only_text(&large).contains("cut off"));
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deeply_fails_its_call_at_once() {
    let mcp = ready(hostile(&[])).await;
    let start = Instant::now();
    let deep = call(&mcp, "deep", json!({})).await.unwrap();
    assert!(deep.is_error && only_text(&deep).contains("nested too deeply"), "{deep:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
}

#[tokio::test]
async fn a_server_that_answers_and_ends_has_answered() {
    let mcp = ready(hostile(&[])).await;
    for _ in 0..3 {
        assert_eq!(text(&mcp, "last_words", json!({})).await, "goodbye");
        until("its end", || state(&mcp, "s") == ServerState::Idle).await;
    }
}

#[tokio::test]
async fn calls_run_beside_each_other() {
    let mcp = ready(hostile(&[])).await;
    let start = Instant::now();
    let calls = (0..20).map(|_| call(&mcp, "sleep", json!({"seconds": 0.5})));
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(|result| result.as_ref().is_ok_and(|result| !result.is_error)));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[tokio::test]
async fn progress_is_passed_on_and_buys_time_up_to_a_limit() {
    let server = with(hostile(&[]), json!({"timeout_s": 1, "timeout_max_s": 2}));
    let mcp = ready(server).await;
    let (context, result_text) = listening(Cancel::never());
    let arguments = RawJson::parse(r#"{"steps":4,"pause":0.35}"#).unwrap();
    let result = mcp.execute("mcp__s__progress", &arguments, context).await.unwrap();
    assert_eq!(result, ToolResult::text("done"));
    let lines = result_text.lock().unwrap().clone();
    assert_eq!(lines, ["1/4 step 1\n", "2/4 step 2\n", "3/4 step 3\n", "4/4 step 4\n"]);

    let start = Instant::now();
    let endless = call(&mcp, "progress", json!({"steps": 600, "pause": 0.1})).await.unwrap();
    assert!(endless.is_error && only_text(&endless).contains("within 2 s"), "{endless:?}");
    assert!((2..20).contains(&start.elapsed().as_secs()));
    // It talked all the time: it is slow, not dead.
    assert_eq!((state(&mcp, "s"), status(&mcp, "s").restarts), (ServerState::Ready, 0));
}

#[tokio::test]
async fn a_server_that_says_nothing_at_all_is_started_anew() {
    let mcp = ready(with(hostile(&[]), json!({"timeout_s": 1}))).await;
    let deaf = call(&mcp, "deaf", json!({})).await.unwrap();
    let result_text = only_text(&deaf);
    assert!(deaf.is_error && result_text.contains("outcome unknown"), "{result_text}");
    assert_eq!(text(&mcp, "echo", json!({"text": "again"})).await, "again");
    assert_eq!(status(&mcp, "s").restarts, 1);
}

#[tokio::test]
async fn a_canceled_call_ends_at_once_and_the_server_is_told() {
    let mcp = ready(hostile(&[])).await;
    let (switch, signal) = oneshot::channel::<()>();
    let context = ToolContext::trial(Cancel::when(async { drop(signal.await) }));
    let arguments = RawJson::parse(r#"{"seconds":60}"#).unwrap();
    let running = mcp.execute("mcp__s__sleep", &arguments, context);
    let canceling = async {
        // Once the server has it.
        while !text(&mcp, "heard", json!({})).await.contains("\"seconds\": 60") {}
        drop(switch);
        Instant::now()
    };
    let (result, canceled) = tokio::join!(running, canceling);
    assert_eq!(result, Err(ToolError::Canceled));
    assert!(canceled.elapsed() < Duration::from_secs(2));

    let start = Instant::now();
    loop {
        let received: Vec<Value> =
            serde_json::from_str(&text(&mcp, "heard", json!({})).await).unwrap();
        let call = received.iter().find(|message| message["params"]["name"] == "sleep").unwrap();
        let reported =
            received.iter().find(|message| message["method"] == "notifications/cancelled");
        if let Some(reported) = reported {
            assert_eq!(reported["params"]["requestId"], call["id"]);
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "the server got no cancellation");
    }
    assert_eq!((state(&mcp, "s"), status(&mcp, "s").restarts), (ServerState::Ready, 0));
}

#[tokio::test]
async fn requests_of_a_server_are_declined_politely() {
    let mcp = ready(hostile(&[])).await;
    let sampled = text(&mcp, "ask", json!({"method": "sampling/createMessage"})).await;
    assert!(sampled.contains("-32601"), "{sampled}");
    let elicited = text(&mcp, "ask", json!({"method": "elicitation/create"})).await;
    assert!(elicited.contains("decline"), "{elicited}");
    let roots = text(&mcp, "ask", json!({"method": "roots/list"})).await;
    assert_eq!(roots, r#"{"roots": []}"#);
    let unknown = text(&mcp, "ask", json!({"method": "give/money"})).await;
    assert!(unknown.contains("-32601"), "{unknown}");
    assert_eq!(text(&mcp, "ask", json!({"method": "ping"})).await, "{}");
}

#[tokio::test]
async fn a_server_may_know_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("with space");
    let options = antiphon_mcp::McpOptions {
        environment: crate::world::environment(),
        workspace: Some(workspace.clone()),
        cache_file: None,
        token_folder: None,
    };
    let mcp = antiphon_mcp::Mcp::new(crate::world::config(json!({"s": hostile(&[])})), options);
    mcp.connect_all(crate::world::START).await;
    let roots = text(&mcp, "ask", json!({"method": "roots/list"})).await;
    let expected = workspace.display().to_string().replace(' ', "%20");
    assert_eq!(roots, format!(r#"{{"roots": [{{"uri": "file://{expected}"}}]}}"#));
}

#[tokio::test]
async fn a_server_that_stops_reading_costs_its_own_calls() {
    let mcp = ready(with(hostile(&[]), json!({"timeout_s": 1}))).await;
    assert_eq!(text(&mcp, "stop_reading", json!({})).await, "not listening any more");
    let result = call(&mcp, "echo", json!({"text": "x".repeat(500_000)})).await.unwrap();
    assert!(result.is_error, "{result:?}");
    until("its end", || state(&mcp, "s") != ServerState::Ready).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "again"})).await, "again");
}
