//! `antiphon run`, killed with SIGKILL again and again, and resumed until the task is done.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use project_folder::{ProjectFolder, home};

const SCRIPT: &str = r#"
name = "slow"
delay_ms = 20
chunk_chars = 3
[[reply]]
when = { turn = 0 }
step = [{ text = "Let me see what there is to be seen." }, { call = { name = "nothing", arguments = { a = 1.5 } } }]
[[reply]]
when = { turn = 1 }
step = [{ text = "There is none. Once more, then." }, { call = { name = "nothing", arguments = {} } }]
[[reply]]
step = [{ text = "That was all." }]
"#;

fn antiphon(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
    command.current_dir(folder).env_clear().env("HOME", home(folder)).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(antiphon(folder).args(arguments));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The conversation, without times.
fn conversation(folder: &Path) -> Vec<Value> {
    let task = json(folder, &["tasks", "list", "--json"])[0]["task_id"].clone();
    let shown = json(folder, &["tasks", "show", "--json", task.as_str().unwrap()]);
    assert_eq!(shown["status"], "completed", "{shown:#}");
    let mut messages = shown["conversation"].as_array().unwrap().clone();
    for message in &mut messages {
        message.as_object_mut().unwrap().remove("timestamp");
    }
    messages
}

fn folder() -> ProjectFolder {
    let folder = ProjectFolder::new();
    fs::write(folder.path().join("slow.toml"), SCRIPT).unwrap();
    folder
}

const MODEL: [&str; 4] = ["--model", "scripted/slow", "--script", "slow.toml"];

#[test]
fn a_task_that_is_killed_many_times_has_the_same_conversation_as_an_undisturbed_one() {
    let undisturbed = folder();
    let first = run(antiphon(undisturbed.path()).args(["run", "go"]).args(MODEL));
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));

    let folder = folder();
    let mut kills = 0;
    // A little later each time, so that it dies at another point and completes in the end.
    for delay_ms in (10..).step_by(7) {
        let mut command = antiphon(folder.path());
        match kills {
            0 => command.args(["run", "go"]).args(MODEL),
            _ => command.args(["run", "--resume", "last"]),
        };
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = std::time::Instant::now() + Duration::from_millis(delay_ms);
        while child.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !run(antiphon(folder.path()).args(["tasks", "list"])).status.success() {
            // Killed before the task was accepted: there is nothing to resume.
            continue;
        }
        match json(folder.path(), &["tasks", "list", "--json"])[0]["status"].as_str() {
            Some("completed") => break,
            Some(_) => kills += 1,
            None => {}
        }
    }
    assert!(kills >= 5, "{kills} kills");
    assert_eq!(conversation(folder.path()), conversation(undisturbed.path()));
}
