//! Text that is piped beside a prompt.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use crate::project::{Project, Run};

const ECHO: &str = "name = \"echo\"\n[[reply]]\nsteps = [{ text = \"{{last_user}}\" }]\n";

/// The prompt that the model got.
fn prompt(mut command: Command, input: impl Into<Stdio>) -> (String, String) {
    let run = Run::start({
        command.stdin(input);
        command
    });
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let said = |line: &&serde_json::Value| line["data"]["message"]["type"] == "user";
    let line = ended.lines.iter().find(said).unwrap();
    (line["data"]["message"]["content"][0]["text"].as_str().unwrap().to_owned(), ended.said)
}

#[test]
fn what_is_piped_beside_a_prompt_is_appended() {
    let project = Project::new();
    fs::write(project.path().join("echo.toml"), ECHO).unwrap();
    let run = || project.run_command("echo", &[]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"a log\n").unwrap();
    drop(writer);
    assert_eq!(prompt(run(), reader).0, "go echo\n\na log\n");
    fs::write(project.path().join("log"), "a file").unwrap();
    let file = File::open(project.path().join("log")).unwrap();
    assert_eq!(prompt(run(), file).0, "go echo\n\na file");
    assert_eq!(prompt(run(), Stdio::null()).0, "go echo");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    assert_eq!(prompt(run(), reader).0, "go echo");
}

/// As under a service or a build server that keeps the pipe open.
#[test]
fn an_idle_pipe_beside_a_prompt_does_not_hold_up_the_task() {
    let project = Project::new();
    fs::write(project.path().join("echo.toml"), ECHO).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let (prompt, said) = prompt(project.run_command("echo", &[]), reader);
    drop(writer);
    assert_eq!(prompt, "go echo");
    assert!(said.contains("nothing came on standard input"), "{said}");
}
