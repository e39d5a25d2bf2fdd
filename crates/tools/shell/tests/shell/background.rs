//! Commands that continue in the background.

use std::time::Duration;

use antiphon_core::port::Cancel;
use serde_json::json;

use crate::bench::{Bench, eventually, running, switch, token};

#[tokio::test]
async fn a_command_that_takes_too_long_continues_in_the_background() {
    let bench = Bench::new();
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4";
    let said = bench.bash(json!({ "command": command, "timeout_s": 1 })).await;
    assert!(said.text.starts_with("one\n[still running after 1.00 s: "), "{}", said.text);
    assert!(!said.is_error);
    let id = said.id();
    let said = bench.output(&id, 0).await;
    assert!(said.text.starts_with("(nothing new)\n[still running, for 1."), "{}", said.text);
    std::fs::write(bench.root.join("go"), "").unwrap();
    let said = bench.output(&id, 5).await;
    assert!(said.text.starts_with("two\n[exit code 4, ") && said.is_error, "{}", said.text);
    let said = bench.output(&id, 0).await;
    assert!(said.text.starts_with("(nothing new)\n[exit code 4, "), "{}", said.text);
}

#[tokio::test]
async fn a_server_is_started_in_the_background_and_ended() {
    let bench = Bench::new();
    let token = token();
    let arguments = json!({ "command": format!("echo up; sleep {token}"), "background": true });
    let said = bench.bash(arguments).await;
    assert!(said.text.starts_with("up\n[runs in the background as `sh-"), "{}", said.text);
    assert_eq!(running(&token), 1);
    let said = bench.kill(&said.id()).await;
    assert!(said.text.contains("was ended, with everything it had started") && !said.is_error);
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn killing_twice_is_the_same_as_once() {
    let bench = Bench::new();
    let id = bench.background("sleep 100").await;
    bench.kill(&id).await;
    let said = bench.kill(&id).await;
    assert!(said.text.contains("had ended before") && !said.is_error, "{}", said.text);
}

#[tokio::test]
async fn a_background_command_that_fails_at_once_is_reported_at_once() {
    let bench = Bench::new();
    let arguments = json!({ "command": "echo cannot >&2; exit 7", "background": true });
    let said = bench.bash(arguments).await;
    assert!(said.text.starts_with("cannot\n[exit code 7, ") && said.is_error, "{}", said.text);
}

#[tokio::test]
async fn too_many_background_commands_are_refused_with_advice() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let sleep = || bench.background("sleep 100");
        ids.extend(<[String; 2]>::from(tokio::join!(sleep(), sleep())));
    }
    let said = bench.bash(json!({ "command": "sleep 100", "background": true })).await;
    assert!(said.is_error && said.text.contains("bash_kill"), "{}", said.text);
    assert!(ids.iter().all(|id| said.text.contains(id)), "{}", said.text);
    // One that has to go there is ended instead.
    let token = token();
    let arguments = json!({ "command": format!("echo said; sleep {token}"), "timeout_s": 1 });
    let said = bench.bash(arguments).await;
    assert!(said.is_error && said.text.starts_with("said\n[ended after 1.00 s"), "{}", said.text);
    assert_eq!(running(&token), 0);
    bench.kill(&ids[0]).await;
    bench.background("sleep 100").await;
}

#[tokio::test]
async fn an_unknown_id_is_reported() {
    let bench = Bench::new();
    let id = bench.background("sleep 100").await;
    for said in [bench.output("sh-00000000", 0).await, bench.kill("sh-00000000").await] {
        assert!(said.is_error && said.text.contains("before a restart"), "{}", said.text);
        assert!(said.text.contains(&id), "{}", said.text);
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
    let said = bench.run(&format!("(echo daemon; sleep {token}; echo late) & echo done")).await;
    assert!(said.text.contains("done\n") && said.text.contains("[exit code 0"), "{}", said.text);
    assert!(said.text.contains("[something it started is still running"), "{}", said.text);
    eventually("the daemon", || running(&token) == 1).await;
    let id = said.id();
    let said = bench.kill(&id).await;
    assert!(said.text.contains("nothing of it is left"), "{}", said.text);
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn a_daemon_that_keeps_writing_does_not_delay_the_call() {
    let bench = Bench::new();
    let said = bench.run("yes & echo $!; exit 5").await;
    assert!(said.text.contains("[exit code 5"), "{}", said.text);
    // The command is ended once it has written too much.
    let id = said.id();
    while !bench.output(&id, 0).await.text.contains("more than 64 MB") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn later_output_of_a_daemon_can_be_read() {
    let bench = Bench::new();
    let said = bench.run("(until [ -e go ]; do sleep 0.01; done; echo late) & echo done").await;
    let id = said.id();
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
