//! Commands that continue in the background.

use std::time::Duration;

use antiphon_core::port::Cancel;
use serde_json::json;

use crate::bench::{Bench, eventually, running, switch, token};

#[tokio::test]
async fn a_command_that_takes_too_long_continues_in_the_background() {
    let bench = Bench::new();
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4";
    let tool_output = bench.bash(json!({ "command": command, "timeout_s": 1 })).await;
    assert!(
        tool_output.text.starts_with("one\n[still running after 1.00 s: "),
        "{}",
        tool_output.text
    );
    assert!(!tool_output.is_error);
    let id = tool_output.id();
    let tool_output = bench.output(&id, 0).await;
    assert!(
        tool_output.text.starts_with("(nothing new)\n[still running, for 1."),
        "{}",
        tool_output.text
    );
    std::fs::write(bench.root.join("go"), "").unwrap();
    let tool_output = bench.output(&id, 5).await;
    assert!(
        tool_output.text.starts_with("two\n[exit code 4, ") && tool_output.is_error,
        "{}",
        tool_output.text
    );
    let tool_output = bench.output(&id, 0).await;
    assert!(tool_output.text.starts_with("(nothing new)\n[exit code 4, "), "{}", tool_output.text);
}

#[tokio::test]
async fn a_server_is_started_in_the_background_and_ended() {
    let bench = Bench::new();
    let token = token();
    let arguments = json!({ "command": format!("echo up; sleep {token}"), "background": true });
    let tool_output = bench.bash(arguments).await;
    assert!(
        tool_output.text.starts_with("up\n[runs in the background as `sh-"),
        "{}",
        tool_output.text
    );
    assert_eq!(running(&token), 1);
    let tool_output = bench.kill(&tool_output.id()).await;
    assert!(
        tool_output.text.contains("was ended, with everything it had started")
            && !tool_output.is_error
    );
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn killing_twice_is_the_same_as_once() {
    let bench = Bench::new();
    let id = bench.background("sleep 100").await;
    bench.kill(&id).await;
    let tool_output = bench.kill(&id).await;
    assert!(
        tool_output.text.contains("had ended before") && !tool_output.is_error,
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn a_background_command_that_fails_at_once_is_reported_at_once() {
    let bench = Bench::new();
    let arguments = json!({ "command": "echo cannot >&2; exit 7", "background": true });
    let tool_output = bench.bash(arguments).await;
    assert!(
        tool_output.text.starts_with("cannot\n[exit code 7, ") && tool_output.is_error,
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn too_many_background_commands_are_refused_with_advice() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let sleep = || bench.background("sleep 100");
        ids.extend(<[String; 2]>::from(tokio::join!(sleep(), sleep())));
    }
    let tool_output = bench.bash(json!({ "command": "sleep 100", "background": true })).await;
    assert!(tool_output.is_error && tool_output.text.contains("bash_kill"), "{}", tool_output.text);
    assert!(ids.iter().all(|id| tool_output.text.contains(id)), "{}", tool_output.text);
    // One that has to go there is ended instead.
    let token = token();
    let arguments = json!({ "command": format!("echo said; sleep {token}"), "timeout_s": 1 });
    let tool_output = bench.bash(arguments).await;
    assert!(
        tool_output.is_error && tool_output.text.starts_with("said\n[ended after 1.00 s"),
        "{}",
        tool_output.text
    );
    assert_eq!(running(&token), 0);
    bench.kill(&ids[0]).await;
    bench.background("sleep 100").await;
}

#[tokio::test]
async fn an_unknown_id_is_reported() {
    let bench = Bench::new();
    let id = bench.background("sleep 100").await;
    for tool_output in [bench.output("sh-00000000", 0).await, bench.kill("sh-00000000").await] {
        assert!(
            tool_output.is_error && tool_output.text.contains("before a restart"),
            "{}",
            tool_output.text
        );
        assert!(tool_output.text.contains(&id), "{}", tool_output.text);
    }
}

#[tokio::test]
async fn a_command_is_unknown_to_another_task() {
    let mut bench = Bench::new();
    let id = bench.background("sleep 100").await;
    bench.task_id = antiphon_core::TaskId::parse("task-2").unwrap();
    assert!(bench.kill(&id).await.is_error);
}

#[tokio::test]
async fn a_call_ends_while_a_daemon_holds_its_output_open() {
    let bench = Bench::new();
    let token = token();
    let tool_output =
        bench.run(&format!("(echo daemon; sleep {token}; echo late) & echo done")).await;
    assert!(
        tool_output.text.contains("done\n") && tool_output.text.contains("[exit code 0"),
        "{}",
        tool_output.text
    );
    assert!(
        tool_output.text.contains("[something it started is still running"),
        "{}",
        tool_output.text
    );
    eventually("the daemon", || running(&token) == 1).await;
    let id = tool_output.id();
    let tool_output = bench.kill(&id).await;
    assert!(tool_output.text.contains("nothing of it is left"), "{}", tool_output.text);
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn a_daemon_that_keeps_writing_does_not_delay_the_call() {
    let bench = Bench::new();
    let tool_output = bench.run("yes & echo $!; exit 5").await;
    assert!(tool_output.text.contains("[exit code 5"), "{}", tool_output.text);
    // The command is ended once it has written too much.
    let id = tool_output.id();
    while !bench.output(&id, 0).await.text.contains("more than 64 MB") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn later_output_of_a_daemon_can_be_read() {
    let bench = Bench::new();
    let tool_output =
        bench.run("(until [ -e go ]; do sleep 0.01; done; echo late) & echo done").await;
    let id = tool_output.id();
    std::fs::write(bench.root.join("go"), "").unwrap();
    let mut text = String::new();
    while !text.contains("late") {
        text = bench.output(&id, 0).await.text;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(text.starts_with("late\n[exit code 0"), "{text}");
}

#[tokio::test]
async fn waiting_can_be_canceled_and_the_command_continues() {
    let bench = Bench::new();
    let token = token();
    let id = bench.background(&format!("sleep {token}")).await;
    let (switch, cancel) = switch();
    drop(switch);
    let arguments = json!({ "id": id, "wait_s": 100 });
    let answer = bench.call("bash_output", arguments, cancel).await;
    assert_eq!(answer, Err(antiphon_core::ToolError::Canceled));
    assert_eq!(running(&token), 1);
    let too_long = json!({ "id": id, "wait_s": 601 });
    assert!(bench.call("bash_output", too_long, Cancel::never()).await.is_err());
}
