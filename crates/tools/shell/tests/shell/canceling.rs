//! Canceled calls: every process they started is gone before they return.

use std::time::{Duration, Instant};

use antiphon_core::ToolError;
use antiphon_core::port::Cancel;
use serde_json::json;

use crate::bench::{Bench, eventually, running, switch, token};

/// Ways to detach from the parent process.
const WAYS: [&str; 7] = [
    "sleep TOKEN",
    "setsid -w sleep TOKEN",
    "nohup sleep TOKEN > /dev/null 2>&1 & sleep 100",
    "(setsid sleep TOKEN &) & sleep 100",
    "(setsid env -i /bin/sleep TOKEN > /dev/null 2>&1 < /dev/null &) & sleep 100",
    "trap '' TERM INT HUP; setsid -w bash -c \"trap '' TERM INT HUP; sleep TOKEN; true\"",
    "python3 -c \"import os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.closerange(0, 99); os.execvp('env', ['env', '-i', '/bin/sleep', 'TOKEN'])\n os._exit(0)\ntime.sleep(100)\"",
];

async fn nothing_is_left(bench: Bench) {
    for way in WAYS {
        let token = token();
        let (switch, cancel) = switch();
        let command = way.replace("TOKEN", &token);
        let mut call = std::pin::pin!(bench.call("bash", json!({ "command": command }), cancel));
        tokio::select! {
            tool_output = &mut call => assert!(tool_output.is_err(), "{way} ended early: {tool_output:?}"),
            () = eventually(way, || running(&token) > 0) => {}
        }
        drop(switch);
        assert_eq!(call.await, Err(ToolError::Canceled), "{way}");
        assert_eq!(running(&token), 0, "{way}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_canceled_call() {
    nothing_is_left(Bench::new()).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_canceled_call_without_a_sandbox() {
    nothing_is_left(Bench::full()).await;
}

async fn other_calls_stay(bench: Bench) {
    let (mine, theirs) = (token(), token());
    let id = bench.background(&format!("(setsid sleep {theirs} &); sleep {theirs}")).await;
    eventually("the other command", || running(&theirs) == 2).await;
    let (switch, cancel) = switch();
    let command = json!({ "command": format!("sleep {mine}") });
    let mut call = std::pin::pin!(bench.call("bash", command, cancel));
    tokio::select! {
        tool_output = &mut call => assert!(tool_output.is_err(), "ended early: {tool_output:?}"),
        () = eventually("the command", || running(&mine) == 1) => {}
    }
    drop(switch);
    assert_eq!(call.await, Err(ToolError::Canceled));
    assert_eq!((running(&mine), running(&theirs)), (0, 2));
    bench.kill(&id).await;
    assert_eq!(running(&theirs), 0);
}

#[tokio::test]
async fn a_cancel_leaves_other_calls_alone() {
    other_calls_stay(Bench::new()).await;
}

#[tokio::test]
async fn a_cancel_leaves_other_calls_alone_without_a_sandbox() {
    other_calls_stay(Bench::full()).await;
}

#[tokio::test]
async fn a_command_gets_sigterm_before_sigkill() {
    let bench = Bench::new();
    let command = "trap 'echo asked > asked; exit' TERM; touch ready; while :; do sleep 0.01; done";
    let (switch, cancel) = switch();
    let mut call = std::pin::pin!(bench.call("bash", json!({ "command": command }), cancel));
    tokio::select! {
        tool_output = &mut call => assert!(tool_output.is_err(), "ended early: {tool_output:?}"),
        () = eventually("the command", || bench.root.join("ready").exists()) => {}
    }
    drop(switch);
    let begun = Instant::now();
    assert_eq!(call.await, Err(ToolError::Canceled));
    assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
    assert_eq!(std::fs::read_to_string(bench.root.join("asked")).unwrap(), "asked\n");
}

#[tokio::test]
async fn a_call_canceled_before_its_start_starts_nothing() {
    let bench = Bench::new();
    let canceled = Cancel::when(std::future::ready(()));
    let answer = bench.call("bash", json!({ "command": "touch ran" }), canceled).await;
    assert_eq!(answer, Err(ToolError::Canceled));
    bench.works("true").await;
    assert!(!bench.root.join("ran").exists());
}

#[tokio::test]
async fn a_dropped_call_is_ended() {
    let bench = Bench::new();
    let token = token();
    let command = format!("sleep {token}");
    let call = bench.run(&command);
    tokio::select! {
        tool_output = call => assert!(tool_output.is_error, "ended early: {}", tool_output.text),
        () = eventually("the command", || running(&token) == 1) => {}
    }
    eventually("its end", || running(&token) == 0).await;
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn a_stopped_command_can_be_ended() {
    let bench = Bench::new();
    let id = bench.background("kill -STOP $$").await;
    let begun = Instant::now();
    let tool_output = bench.kill(&id).await;
    assert!(tool_output.text.contains("was ended"), "{}", tool_output.text);
    assert!(begun.elapsed() < Duration::from_secs(2));
}
