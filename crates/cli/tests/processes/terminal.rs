//! At a terminal.

use std::num::NonZeroU16;
use std::time::Duration;

use serde_json::Value;

use crate::project::{Project, Run, is_running, until};
use crate::pty::Terminal;

/// What a person sees: the scrollback is long enough for all of it.
fn seen(written: &str) -> String {
    let (rows, columns) = (NonZeroU16::new(200).unwrap(), NonZeroU16::new(100).unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(written.as_bytes());
    screen.screen().contents()
}

#[test]
fn a_client_at_a_terminal_notices_no_more_than_a_line_when_the_owner_is_killed() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    project.script("client", &["sleep 0.4; echo one >> effects", "sleep 2; echo two >> effects"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/client"]);
    command.args(["--script", "client.toml", "go"]).env("TERM", "xterm");
    let mut client = Terminal::start(command);
    client.until("step 0");
    owner.kill();
    client.until("this one goes on");
    client.press("and then?\n");
    client.until("Queued: the agent reads it");
    let (code, shown) = client.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("step 1") && shown.contains("done"), "{shown}");
    let shown = seen(&shown);
    assert_eq!(shown.matches("step 0").count(), 1, "{shown}");
    assert_eq!(shown.matches("has ended; this one goes on").count(), 1, "{shown}");
}

/// The owner has the request, and dies before it answers.
#[test]
fn a_pause_while_the_owner_dies_reaches_the_next_one() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    let call = "echo one >> effects; until [ -e go ]; do sleep 0.02; done";
    // The line may be read when the next owner has begun the second call.
    project.script("client", &[call, "sleep 2; echo two >> effects", "echo three >> effects"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/client"]);
    command.args(["--script", "client.toml", "go"]).env("TERM", "xterm");
    let mut client = Terminal::start(command);
    until("the call", || project.read("effects") == "one\n");
    send_if_running(project.owner(), "-STOP");
    client.press("/pause\n");
    owner.kill();
    let (code, shown) = client.end();
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("--resume"), "{shown}");
    let is_paused = |task: &Value| task["waiting_for"] == "resume";
    assert_eq!(project.tasks().iter().filter(|task| is_paused(task)).count(), 1, "{shown}");
    assert!(!project.read("effects").contains("three"), "{shown}");
}

/// The owner has the request, and dies before it answers.
#[test]
fn a_line_that_is_typed_while_the_owner_dies_is_read_once() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    let script = r#"
        name = "client"
        [[reply]]
        when = { last_user_contains = "and then" }
        steps = [{ text = "I read: {{last_user}}" }]
        [[reply]]
        steps = [{ call = { name = "bash", arguments = { command = """
            touch began; until [ -e go ]; do sleep 0.02; done""" } } }]
    "#;
    std::fs::write(project.path().join("client.toml"), script).unwrap();
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/client"]);
    command.args(["--script", "client.toml", "go"]).env("TERM", "xterm");
    let mut client = Terminal::start(command);
    until("the call", || project.path().join("began").exists());
    send_if_running(project.owner(), "-STOP");
    client.press("and then?\n");
    owner.kill();
    client.until("Queued: the agent reads it");
    std::fs::write(project.path().join("go"), "").unwrap();
    let (code, shown) = client.end();
    assert_eq!(code, 0, "{shown}");
    let shown = seen(&shown);
    assert_eq!(shown.matches("I read: and then?").count(), 1, "{shown}");
}

/// A process that is killed discards nothing itself.
#[test]
fn a_line_that_was_not_sent_does_not_reach_the_shell_when_the_process_that_works_is_killed() {
    let project = Project::new();
    project.script("owner", &["sleep 600"]);
    let mut shell = Terminal::start(project.shell(&["-i"]));
    shell.press("\"$ANTIPHON\" run --mode full --model scripted/owner --script owner.toml go\n");
    shell.until("step 0");
    project.wait_for_owner();
    shell.press("touch unsent");
    shell.until("touch unsent");
    send_if_running(project.owner(), "-KILL");
    shell.until("Killed");
    shell.press("\necho '@@'next'@@'\n");
    shell.until("@@next@@");
    assert!(!project.path().join("unsent").exists(), "{}", shell.text());
}

/// How a task at a terminal ends while a line is typed and not sent.
enum End {
    Done,
    CtrlC,
    Terminated,
}

#[test]
fn a_line_that_was_not_sent_does_not_reach_the_shell_however_the_task_ends() {
    for end in [End::Done, End::CtrlC, End::Terminated] {
        let project = Project::new();
        project.script("owner", &["until [ -e go ]; do sleep 0.02; done"]);
        let mut shell = Terminal::start(project.shell(&["-i"]));
        shell
            .press("\"$ANTIPHON\" run --mode full --model scripted/owner --script owner.toml go\n");
        shell.until("step 0");
        project.wait_for_owner();
        shell.press("touch unsent");
        shell.until("touch unsent");
        match end {
            End::Done => std::fs::write(project.path().join("go"), "").unwrap(),
            End::CtrlC => shell.press("\x03"),
            End::Terminated => send_if_running(project.owner(), "-TERM"),
        }
        let owner = project.owner();
        until("its end", || !is_running(owner));
        shell.press("\necho '@@'next'@@'\n");
        shell.until("@@next@@");
        assert!(!project.path().join("unsent").exists(), "{}", shell.text());
    }
}

#[test]
fn an_owner_at_a_terminal_gives_it_back_while_the_call_of_another_runs() {
    let project = Project::new();
    project.script("owner", &["until [ -e started ]; do sleep 0.02; done"]);
    project.script("client", &["touch started; sleep 1.5; echo called >> effects"]);
    let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/owner"]);
    command.args(["--script", "owner.toml", "go"]).env("TERM", "xterm");
    let mut owner = Terminal::start(command);
    owner.until("step 0");
    project.wait_for_owner();
    let worker = project.owner();
    let client = Run::start(project.run_command("client", &["--mode", "full"]));
    let (code, shown) = owner.end();
    assert_eq!(code, 0, "{shown}");
    // No process holds the terminal any more, and the call goes on.
    assert!(is_running(worker));
    std::thread::sleep(Duration::from_millis(10));
    client.end().assert_whole();
    assert_eq!(project.read("effects"), "called\n");
    until("its end", || !is_running(worker));
}

/// The system sends SIGHUP to the processes of a terminal whose session has ended.
#[test]
fn closing_the_terminal_of_the_owner_cuts_off_no_call_of_another_process() {
    let project = Project::new();
    project.script("owner", &["sleep 600"]);
    let command = "touch started; until [ -e go ]; do sleep 0.02; done; echo called >> effects";
    project.script("client", &[command]);
    let run = "$ANTIPHON run --mode full --model scripted/owner --script owner.toml go; :";
    let mut owner = Terminal::start(project.shell(&["-c", run]));
    owner.until("step 0");
    project.wait_for_owner();
    let worker = project.owner();
    let client = Run::start(project.run_command("client", &["--mode", "full"]));
    until("the call", || project.path().join("started").exists());
    drop(owner);
    until("the interruption of its own task", || {
        project.tasks().iter().any(|task| task["status"] == "input_required")
    });
    assert!(is_running(worker), "it serves the other process");
    std::fs::write(project.path().join("go"), "").unwrap();
    client.end().assert_whole();
    assert_eq!(project.read("effects"), "called\n");
    until("its end", || !is_running(worker));
}

/// Sends a signal to a process, which may have ended.
fn send_if_running(pid: u32, signal: &str) {
    std::process::Command::new("kill").args([signal, &pid.to_string()]).output().unwrap();
}

/// SIGTERM gives calls their time; Ctrl-C ends that.
#[test]
fn an_interrupt_after_a_termination_ends_at_once() {
    let project = Project::new();
    project.script("owner", &["sleep 600"]);
    let mut run = Run::start(project.run_command("owner", &["--mode", "full", "--grace", "600"]));
    run.until_event("tool_started");
    project.wait_for_owner();
    let worker = project.owner();
    send_if_running(worker, "-TERM");
    let ready = "GET /health/ready HTTP/1.0\r\nhost: localhost\r\n\r\n";
    until("the drain", || project.ask_owner(ready).contains(" 503 "));
    // A copy of the first signal counts as the first.
    until("its end", || {
        send_if_running(worker, "-INT");
        !is_running(worker)
    });
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
}
