//! Servers that exit unexpectedly.

use std::time::{Duration, Instant};

use antiphon_core::port::ToolError;
use antiphon_mcp::ServerState;
use serde_json::json;

use crate::world::{call, hostile, names, only_text, ready, state, status, text, until};

#[tokio::test]
async fn a_call_that_the_server_dies_in_has_an_unknown_outcome_and_the_next_one_works() {
    let mcp = ready(hostile(&[])).await;
    let tools = names(&mcp);
    let (died, beside) =
        tokio::join!(call(&mcp, "die", json!({})), call(&mcp, "sleep", json!({"seconds": 30})));
    for result in [died, beside] {
        let result = result.unwrap();
        assert!(
            result.is_error && only_text(&result).contains("died during the call, outcome unknown")
        );
    }
    until("its end", || state(&mcp, "s") == ServerState::Idle).await;
    let after = status(&mcp, "s");
    assert!(after.last_error.as_deref().unwrap().contains("these are my last words"), "{after:?}");
    assert_eq!(names(&mcp), tools, "the list does not change because a server died");
    assert_eq!(text(&mcp, "echo", json!({"text": "again"})).await, "again");
    assert_eq!(status(&mcp, "s").restarts, 1);
}

#[tokio::test]
async fn a_server_that_dies_again_and_again_is_left_alone() {
    let mcp = ready(hostile(&[])).await;
    let start = Instant::now();
    let mut deaths = 0;
    let refused = loop {
        match call(&mcp, "die", json!({})).await {
            Ok(result) => {
                assert!(result.is_error);
                deaths += 1;
                assert!(deaths < 10);
            }
            Err(error) => break error,
        }
    };
    assert_eq!(deaths, 4, "the first start and three restarts");
    let ToolError::Unavailable { tool, reason } = refused else { panic!("{refused}") };
    assert_eq!(tool, "mcp__s__die");
    assert!(reason.contains("started 4 times within a minute"), "{reason}");
    assert!(matches!(state(&mcp, "s"), ServerState::Failed { .. }));
    assert!(start.elapsed() < Duration::from_secs(30));
    // From now on at once, without another process.
    let again = Instant::now();
    assert!(call(&mcp, "echo", json!({"text": "hi"})).await.is_err());
    assert!(again.elapsed() < Duration::from_secs(1));
    assert_eq!(status(&mcp, "s").restarts, 3);
}

#[tokio::test]
async fn a_server_that_cannot_be_started_fails_fast_and_is_tried_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut config = hostile(&[]);
    config["args"] = json!([program.display().to_string()]);
    let mcp = crate::world::prepared(json!({"s": config}));
    mcp.connect_all(crate::world::START).await;
    assert!(matches!(state(&mcp, "s"), ServerState::Failed { .. }), "{:?}", mcp.status());
    assert_eq!(names(&mcp), [""; 0]);

    // The user installs it, and looks again.
    let script = hostile(&[])["args"][0].as_str().unwrap().to_owned();
    std::fs::copy(script, &program).unwrap();
    let start = Instant::now();
    while names(&mcp).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", mcp.status());
        mcp.connect_all(Duration::from_secs(1)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(state(&mcp, "s"), ServerState::Ready);
}
