//! The processes of servers: what they inherit, and that none is left behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_mcp::{Mcp, McpOptions, ServerState};
use serde_json::{Value, json};

use crate::world::{START, call, config, hostile, ready, runs, state, text, until, with};

/// Tells a test that it is the child of another.
const CHILD: &str = "ANTIPHON_TEST_CHILD";

async fn family(mcp: &Mcp) -> Vec<u64> {
    let pids: Value = serde_json::from_str(&text(mcp, "family", json!({})).await).unwrap();
    let pids: Vec<u64> =
        ["server", "child"].iter().map(|who| pids[who].as_u64().unwrap()).collect();
    assert!(pids.iter().all(|pid| runs(*pid)));
    pids
}

#[tokio::test]
async fn a_server_inherits_what_it_is_given_and_no_keys() {
    let environment = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", "/home/somebody".to_owned()),
        ("ANTHROPIC_API_KEY", "sk-secret".to_owned()),
        ("GITHUB_TOKEN", "ghp-wanted".to_owned()),
        ("LD_PRELOAD", "/evil.so".to_owned()),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
    let more =
        json!({"env": {"MODE": "test"}, "inherit_env": ["GITHUB_TOKEN", "NOT_SET"], "cwd": "/"});
    let servers = json!({"s": with(hostile(&[]), more)});
    let options = McpOptions { environment, workspace: None, cache_file: None, token_folder: None };
    let mcp = Mcp::new(config(servers), options);
    mcp.connect_all(START).await;
    let got: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&text(&mcp, "environment", json!({})).await).unwrap();
    assert_eq!(got["MODE"], "test");
    assert_eq!(got["GITHUB_TOKEN"], "ghp-wanted");
    assert_eq!(got["HOME"], "/home/somebody");
    assert_eq!(got.get("ANTHROPIC_API_KEY").or(got.get("LD_PRELOAD")), None);
    // The program sets further variables by itself.
    assert!(!got.values().any(|value| value == "sk-secret" || value == "/evil.so"));
}

#[tokio::test]
async fn shutting_down_leaves_no_process_and_fails_calls() {
    let mcp = ready(hostile(&["stubborn"])).await;
    let pids = family(&mcp).await;
    let start = Instant::now();
    let (sleeping, ()) = tokio::join!(
        call(&mcp, "sleep", json!({"seconds": 60})),
        mcp.shutdown(Duration::from_secs(10))
    );
    assert!(sleeping.is_err() || sleeping.is_ok_and(|result| result.is_error));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    until("the end of all processes", || !pids.iter().any(|pid| runs(*pid))).await;
    assert_eq!(state(&mcp, "s"), ServerState::Idle);
    assert!(call(&mcp, "echo", json!({"text": "hi"})).await.is_err());
    mcp.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_deadline_that_is_too_short_is_kept() {
    let mcp = ready(hostile(&["stubborn"])).await;
    let pids = family(&mcp).await;
    let start = Instant::now();
    mcp.shutdown(Duration::from_millis(50)).await;
    assert!(start.elapsed() < Duration::from_secs(1));
    until("the end of all processes", || !pids.iter().any(|pid| runs(*pid))).await;
}

#[tokio::test]
async fn dropped_it_leaves_no_process() {
    let mcp = ready(hostile(&["stubborn"])).await;
    let pids = family(&mcp).await;
    drop(mcp);
    until("the end of all processes", || !pids.iter().any(|pid| runs(*pid))).await;
}

#[tokio::test]
async fn what_a_dead_server_started_is_gone_too() {
    let mcp = ready(hostile(&[])).await;
    let pids = family(&mcp).await;
    assert!(call(&mcp, "die", json!({})).await.unwrap().is_error);
    until("the end of all processes", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// Starts servers, says which processes they are, and waits. Does nothing unless it is a child.
#[tokio::test]
async fn a_child_waits_to_be_killed() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let mcp = ready(hostile(&["stubborn"])).await;
    println!("\npids {:?}", family(&mcp).await);
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn killed_without_warning_it_leaves_no_process() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::a_child_waits_to_be_killed", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids = lines.map_while(Result::ok).find_map(|line| {
        let pids = line.strip_prefix("pids ")?;
        Some(serde_json::from_str::<Vec<u64>>(pids).unwrap())
    });
    let pids = pids.unwrap();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of all processes", || !pids.iter().any(|pid| runs(*pid))).await;
}
