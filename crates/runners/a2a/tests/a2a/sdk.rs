//! Agents made with the official SDKs, unchanged: `a2a-sdk` for Python and `@a2a-js/sdk` for Node, of the versions that
//! `scripts/a2a-sdks` names. They are installed once, into the cache of the tests.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{EventBody, HandlingMode, TaskStatus, UserMessage};
use serde_json::json;

use crate::local::{Local, texts};

/// An agent in a process of its own.
struct SdkAgent {
    url: String,
    process: Child,
}

impl Drop for SdkAgent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn sdks() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/a2a-sdks");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "scripts/a2a-sdks fails");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

impl SdkAgent {
    async fn start(language: &'static str, binding: &'static str) -> Self {
        let starting = tokio::task::spawn_blocking(move || Self::start_now(language, binding));
        starting.await.unwrap()
    }

    fn start_now(language: &str, binding: &str) -> Self {
        let (sdks, scripts) = (sdks(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = match language {
            "python" => {
                let mut command = Command::new(sdks.join("python/bin/python"));
                command.arg(scripts.join("agent.py"));
                command
            }
            _ => {
                let mut command = Command::new("node");
                command.arg(scripts.join("agent.cjs")).arg(&sdks);
                command
            }
        };
        command.arg(port.to_string()).arg(binding).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = process.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        assert!(line.starts_with("http://"), "{language}: {line}");
        Self { url: line.trim().to_owned(), process }
    }
}

/// An echo, a question with its answer, a failure and a cancel.
async fn does_everything(language: &'static str) {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let agent = SdkAgent::start(language, binding).await;
        let local = Local::new(&agent.url);
        let task_id = local.start("hi").await;
        let state = local.ended(&task_id).await;
        assert_eq!(state.detail, Some(json!("You said hi")), "{binding}");
        assert_eq!(texts(&state), ["user: hi", "agent: On it.", "agent: You said hi"]);

        let task_id = local.start("ask").await;
        let detail = local.until_status(&task_id, TaskStatus::InputRequired).await;
        assert!(detail["reason"].as_str().unwrap().contains("Which color?"), "{detail}");
        let answer = UserMessage::text("Blue", SystemClock.now());
        local.orchestrator.send(&task_id, answer, HandlingMode::Queue).await.unwrap();
        let state = local.ended(&task_id).await;
        assert_eq!(state.detail, Some(json!("You said Blue")), "{binding}");
        let said = texts(&state);
        assert_eq!(said[..3], ["user: ask", "agent: Which color?", "user: Blue"]);
        assert_eq!(said.last().unwrap(), "agent: You said Blue");

        let (code, error) = local.failure("fail").await;
        assert_eq!(code, "remote_failed");
        assert!(error.contains("It broke."), "{error}");

        let task_id = local.start("hang").await;
        local.until(&task_id, |body| matches!(body, EventBody::Relayed(_))).await;
        local.orchestrator.cancel(&task_id).await.unwrap();
        assert_eq!(local.ended(&task_id).await.status, TaskStatus::Canceled);
        local.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_python_sdk_does_everything() {
    does_everything("python").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_node_sdk_does_everything() {
    does_everything("node").await;
}
