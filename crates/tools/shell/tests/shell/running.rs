//! Commands that come to an end.

use std::time::{Duration, Instant};

use antiphon_core::ToolError;
use antiphon_core::port::Cancel;
use serde_json::{Value, json};

use crate::bench::{Bench, CallOutcome};

async fn refused(bench: &Bench, arguments: Value) -> String {
    match bench.call("bash", arguments, Cancel::never()).await {
        Err(ToolError::InvalidArguments { tool, reason }) if tool == "bash" => reason,
        other => format!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn output_and_exit_code_are_returned() {
    let bench = Bench::new();
    let tool_output = bench.run("echo out; echo err >&2").await;
    assert!(tool_output.text.starts_with("out\nerr\n[exit code 0, 0."), "{}", tool_output.text);
    assert!(!tool_output.is_error);
    let tool_output = bench.run("echo before; exit 3").await;
    assert!(tool_output.text.starts_with("before\n[exit code 3, "), "{}", tool_output.text);
    assert!(tool_output.is_error);
    let tool_output = bench.run("true").await;
    assert!(tool_output.text.starts_with("(no output)\n[exit code 0, "), "{}", tool_output.text);
}

#[tokio::test]
async fn output_that_is_reopened_by_name_arrives_in_order() {
    let bench = Bench::new();
    let tool_output = bench.run("echo one; echo two > /dev/stderr; echo three > /dev/stdout").await;
    assert!(tool_output.text.starts_with("one\ntwo\nthree\n[exit code 0"), "{}", tool_output.text);
}

#[tokio::test]
async fn a_signal_that_ended_a_command_is_named() {
    let bench = Bench::new();
    for (command, expected) in [
        ("kill -9 $$", "[killed by signal 9 (SIGKILL), "),
        ("kill -TERM $$", "[killed by signal 15 (SIGTERM), "),
        ("kill -SEGV $$", "[killed by signal 11 (SIGSEGV), "),
    ] {
        let tool_output = bench.run(command).await;
        assert!(
            tool_output.text.contains(expected) && tool_output.is_error,
            "{command}: {}",
            tool_output.text
        );
    }
}

#[tokio::test]
async fn an_exit_code_is_truncated_to_eight_bits() {
    let bench = Bench::new();
    for (code, left) in [(300, 44), (256, 0), (255, 255), (-1, 255)] {
        let tool_output = bench.run(&format!("exit {code}")).await;
        assert!(
            tool_output.text.contains(&format!("[exit code {left}, ")),
            "{code}: {}",
            tool_output.text
        );
        assert_eq!(tool_output.is_error, left != 0);
    }
}

#[tokio::test]
async fn a_command_that_is_not_found_says_so() {
    let bench = Bench::new();
    let tool_output = bench.run("no-such-program --help").await;
    assert!(
        tool_output.text.contains("no-such-program: command not found"),
        "{}",
        tool_output.text
    );
    assert!(tool_output.text.contains("[exit code 127, "), "{}", tool_output.text);
}

#[tokio::test]
async fn a_command_runs_in_its_workdir() {
    let bench = Bench::new();
    std::fs::create_dir(bench.root.join("sub folder")).unwrap();
    let tool_output = bench.run("pwd").await;
    assert_eq!(tool_output.output(), format!("{}\n", bench.root.display()));
    let sub = bench.root.join("sub folder");
    for workdir in ["sub folder", "./sub folder/../sub folder", sub.to_str().unwrap()] {
        let tool_output = bench.bash(json!({ "command": "pwd", "workdir": workdir })).await;
        assert_eq!(tool_output.output(), format!("{}\n", sub.display()));
    }
}

#[tokio::test]
async fn a_folder_outside_of_the_workspace_is_refused() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("/etc", bench.root.join("link")).unwrap();
    std::fs::write(bench.root.join("file"), "").unwrap();
    let sibling = bench.outside("root-beside");
    std::fs::create_dir(&sibling).unwrap();
    for (workdir, why) in [
        ("/etc", "not within the workspace"),
        ("..", "not within the workspace"),
        ("link", "not within the workspace"),
        (sibling.to_str().unwrap(), "not within the workspace"),
        ("file", "not a folder"),
        ("absent", "No such file"),
        ("nul\0", "NUL"),
    ] {
        let reason = refused(&bench, json!({ "command": "pwd", "workdir": workdir })).await;
        assert!(reason.contains(why), "{workdir:?}: {reason}");
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_advice() {
    let bench = Bench::new();
    let long = "x".repeat(100_001);
    for (arguments, why) in [
        (json!({}), "missing field `command`"),
        (json!({ "command": " \n" }), "empty"),
        (json!({ "command": long }), "write it to a file"),
        (json!({ "command": "echo \0" }), "NUL"),
        (json!({ "command": "true", "timeout_s": 0 }), "from 1 to 600"),
        (json!({ "command": "true", "timeout_s": 601 }), "from 1 to 600"),
        (json!({ "command": "true", "timeout": 5 }), "unknown field `timeout`"),
        (json!({ "command": ["true"] }), "expected a string"),
    ] {
        let reason = refused(&bench, arguments).await;
        assert!(reason.contains(why), "{why}: {reason}");
    }
}

#[tokio::test]
async fn the_longest_command_runs() {
    let bench = Bench::new();
    let command = format!("# {}\necho ran", "\"".repeat(99_000));
    assert_eq!(bench.works(&command).await, "ran\n");
    // Characters that are escaped in JSON may make the request too long; then the result says what
    // to do.
    let tool_output = bench.run(&format!("# {}\necho ran", "\u{1}".repeat(99_000))).await;
    assert!(
        tool_output.is_error && tool_output.text.contains("write it to a file"),
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn a_command_that_looks_like_an_option_is_a_command() {
    let bench = Bench::new();
    let tool_output = bench.run("--version").await;
    assert!(tool_output.text.contains("--version: command not found"), "{}", tool_output.text);
}

#[tokio::test]
async fn standard_input_is_empty() {
    let bench = Bench::new();
    let begun = Instant::now();
    assert_eq!(bench.works("cat; read line; echo \"got $line, $?\"").await, "got , 1\n");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn two_commands_run_at_once_and_do_not_mix() {
    let bench = Bench::new();
    let meet = |mine: &str, other: &str| {
        format!("touch {mine}; until [ -e {other} ]; do sleep 0.01; done; echo {mine}")
    };
    let (one, other) = (meet("one", "other"), meet("other", "one"));
    let (one, other) = tokio::join!(bench.run(&one), bench.run(&other));
    assert_eq!((one.output(), other.output()), ("one\n", "other\n"));
}

#[tokio::test]
async fn tasks_share_only_the_workspace() {
    let mut bench = Bench::new();
    bench.works("echo first > /tmp/file; echo shared > file").await;
    bench.task_id = antiphon_core::TaskId::parse("task-2").unwrap();
    let tool_output = bench.run("cat file; cat /tmp/file; ls -A /tmp").await;
    assert!(
        tool_output.text.contains("shared") && !tool_output.text.contains("first"),
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn a_removed_workdir_is_reported() {
    let bench = Bench::new();
    bench.works("true").await;
    let sub = bench.root.join("sub");
    std::fs::create_dir(&sub).unwrap();
    assert_eq!(bench.works("cd sub && rmdir ../sub && echo still here").await, "still here\n");
    let CallOutcome { text, is_error } = bench.run("cd sub").await;
    assert!(is_error && text.contains("No such file"), "{text}");
}
