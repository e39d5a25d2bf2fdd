//! The end of a task, of the shell, and of the orchestrator.

use std::process::Stdio;

use antiphon_core::ToolExecutor;

use crate::bench::{Bench, eventually, running, token};

/// Starts processes that detach in every known way, and returns when they run.
async fn scatter(bench: &Bench) -> String {
    let token = token();
    let ways = [
        format!("nohup sleep {token} > /dev/null 2>&1 &"),
        format!("setsid sleep {token} > /dev/null 2>&1 &"),
        format!("(setsid env -i /bin/sleep {token} > /dev/null 2>&1 < /dev/null &) &"),
        format!("(trap '' TERM HUP; exec setsid sleep {token}) > /dev/null 2>&1 &"),
    ];
    for way in &ways {
        bench.works(way).await;
    }
    bench.background(&format!("sleep {token}")).await;
    eventually("everything", || running(&token) == ways.len() + 1).await;
    token
}

async fn released(bench: Bench) {
    let token = scatter(&bench).await;
    bench.release().await;
    assert_eq!(running(&token), 0);
    assert_eq!(std::fs::read_dir(bench.outside("tmp")).unwrap().count(), 0);
    assert!(!bench.root.join(".git").exists(), "a placeholder was left");
    bench.release().await;
    assert_eq!(bench.works("echo again").await, "again\n");
    bench.release().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_released_task() {
    released(Bench::new()).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_released_task_without_a_sandbox() {
    released(Bench::full()).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_shell_is_dropped() {
    let Bench { folder, shell, .. } = {
        let bench = Bench::new();
        let token = scatter(&bench).await;
        std::fs::write(bench.outside("token"), token).unwrap();
        bench
    };
    let token = std::fs::read_to_string(folder.path().join("token")).unwrap();
    drop(shell);
    eventually("the end", || running(&token) == 0).await;
    let tmp = folder.path().join("tmp");
    eventually("clearing", || std::fs::read_dir(&tmp).unwrap().count() == 0).await;
}

async fn orchestrator_killed(bench: Bench, mode: &str) {
    let token = token();
    let mut orchestrator = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::an_orchestrator_to_be_killed", "--nocapture", "--ignored"])
        .env("ORCHESTRATOR_FOLDER", bench.folder.path())
        .env("ORCHESTRATOR_TOKEN", &token)
        .env("ORCHESTRATOR_MODE", mode)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("everything", || running(&token) == 3).await;
    orchestrator.kill().unwrap();
    orchestrator.wait().unwrap();
    eventually("the end of everything", || running(&token) == 0).await;
    let tmp = bench.outside("tmp");
    eventually("clearing", || std::fs::read_dir(&tmp).unwrap().count() == 0).await;
}

#[tokio::test]
async fn nothing_is_left_of_an_orchestrator_that_is_killed() {
    orchestrator_killed(Bench::new(), "workspace").await;
}

#[tokio::test]
async fn nothing_is_left_of_an_orchestrator_that_is_killed_without_a_sandbox() {
    orchestrator_killed(Bench::full(), "full").await;
}

/// Not a test: the process that the two above start and kill.
#[tokio::test]
#[ignore = "started by other tests"]
async fn an_orchestrator_to_be_killed() {
    let folder = std::env::var("ORCHESTRATOR_FOLDER").unwrap();
    let token = std::env::var("ORCHESTRATOR_TOKEN").unwrap();
    let full = std::env::var("ORCHESTRATOR_MODE").unwrap() == "full";
    let bench = Bench::with(|settings| {
        if full {
            settings.policy.mode = antiphon_sandbox::SandboxMode::Full;
        }
        settings.policy.tmp = std::path::Path::new(&folder).join("tmp");
    });
    bench.works(&format!("(setsid env -i /bin/sleep {token} > /dev/null 2>&1 &) &")).await;
    bench.background(&format!("trap '' TERM; sleep {token}; true")).await;
    bench.run(&format!("sleep {token}; true")).await;
}

#[tokio::test]
async fn a_worker_cannot_be_killed_from_inside() {
    let bench = Bench::new();
    let token = token();
    bench.background(&format!("sleep {token}")).await;
    let tool_output =
        bench.run("kill -9 $PPID; kill -STOP $PPID; kill -9 1; echo still here").await;
    assert!(tool_output.text.contains("still here\n[exit code 0"), "{}", tool_output.text);
    assert_eq!(bench.works("echo next").await, "next\n");
    assert_eq!(running(&token), 1);
}

#[tokio::test]
async fn without_a_sandbox_a_killed_worker_is_reported_and_replaced() {
    let bench = Bench::full();
    let token = token();
    let id = bench.background(&format!("sleep {token}")).await;
    let tool_output = bench.run("kill -9 $PPID; sleep 100").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("was killed"),
        "{}",
        tool_output.text
    );
    assert_eq!(bench.works("echo next").await, "next\n");
    eventually("the end of the others", || running(&token) == 0).await;
    let tool_output = bench.output(&id, 0).await;
    assert!(tool_output.is_error && tool_output.text.contains("is gone"), "{}", tool_output.text);
}

#[tokio::test]
async fn without_a_sandbox_a_stopped_worker_is_ended_with_its_task() {
    let bench = Bench::full();
    let token = token();
    bench.background(&format!("kill -STOP $PPID; sleep {token}")).await;
    eventually("the command", || running(&token) == 1).await;
    bench.release().await;
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn a_call_after_the_end_of_a_task_starts_a_new_worker() {
    let bench = Bench::new();
    bench.works("touch /tmp/before").await;
    bench.release().await;
    assert_eq!(bench.works("ls /tmp").await, "(no output)\n");
}

#[tokio::test]
async fn files_that_cannot_be_removed_easily_are_removed() {
    let bench = Bench::new();
    bench
        .works("mkdir -p /tmp/a/b && touch /tmp/a/b/c && chmod 0 /tmp/a/b && chmod 500 /tmp/a")
        .await;
    bench.release().await;
    assert_eq!(std::fs::read_dir(bench.outside("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn an_invalid_worker_program_is_reported() {
    let bench = Bench::with(|settings| settings.worker.program = "/bin/true".into());
    let arguments = antiphon_core::RawJson::parse(r#"{"command":"true"}"#).unwrap();
    let context = antiphon_core::port::ToolContext::trial(antiphon_core::port::Cancel::never());
    let error = bench.shell.execute("bash", &arguments, context).await.unwrap_err();
    assert!(error.to_string().contains("ended before it was ready"), "{error}");
    assert_eq!(std::fs::read_dir(bench.outside("tmp")).unwrap().count(), 0);
}
