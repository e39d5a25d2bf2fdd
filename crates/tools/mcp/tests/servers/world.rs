//! Servers to talk to, and short ways to say things to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, Progress, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{InputBlock, RawJson, ToolResult};
use antiphon_mcp::{Mcp, McpConfig, McpOptions, ServerState, ServerStatus};
use serde_json::{Value, json};

/// Longest a start may take in a test.
pub(crate) const START: Duration = Duration::from_secs(15);

/// The hostile server on its standard streams.
pub(crate) fn hostile(modes: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/hostile.py");
    let args: Vec<String> = std::iter::once(script.display().to_string())
        .chain(modes.iter().map(|mode| (*mode).to_owned()))
        .collect();
    json!({"command": "python3", "args": args})
}

/// `server` with more settings.
pub(crate) fn with(mut server: Value, more: Value) -> Value {
    let more = more.as_object().expect("settings").clone();
    server.as_object_mut().expect("a server").extend(more);
    server
}

pub(crate) fn config(servers: Value) -> McpConfig {
    serde_json::from_value(servers).expect("a configuration")
}

pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

/// The servers by name, not started.
pub(crate) fn prepared(servers: Value) -> Mcp {
    let options = McpOptions { environment: environment(), ..McpOptions::default() };
    Mcp::new(config(servers), options)
}

/// One server called `s`, ready.
pub(crate) async fn ready(server: Value) -> Mcp {
    let mcp = prepared(json!({"s": server}));
    mcp.connect_all(START).await;
    assert_eq!(state(&mcp, "s"), ServerState::Ready, "{:?}", mcp.status());
    mcp
}

/// Calls a tool of `s`.
pub(crate) async fn call(mcp: &Mcp, tool: &str, arguments: Value) -> Result<ToolResult, ToolError> {
    call_named(mcp, &format!("mcp__s__{tool}"), arguments).await
}

pub(crate) async fn call_named(
    mcp: &Mcp,
    name: &str,
    arguments: Value,
) -> Result<ToolResult, ToolError> {
    let arguments = RawJson::of(&arguments).expect("arguments");
    mcp.execute(name, &arguments, ToolContext::trial(Cancel::never())).await
}

/// Calls a tool of `s` that should succeed with one text.
pub(crate) async fn text(mcp: &Mcp, tool: &str, arguments: Value) -> String {
    let result = call(mcp, tool, arguments).await.expect("a result");
    assert!(!result.is_error, "{result:?}");
    only_text(&result)
}

/// The texts of a result, one to a line.
pub(crate) fn only_text(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(image) => format!("{image:?}"),
    };
    result.content.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// A context that remembers what was said.
pub(crate) fn listening(cancel: Cancel) -> (ToolContext, Arc<Mutex<Vec<String>>>) {
    let result_text = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&result_text);
    let mut context = ToolContext::trial(cancel);
    context.progress =
        Progress::to(move |text| received.lock().expect("a lock").push(text.to_owned()));
    (context, result_text)
}

pub(crate) fn status(mcp: &Mcp, name: &str) -> ServerStatus {
    mcp.status().into_iter().find(|status| status.name.as_str() == name).expect("a server")
}

pub(crate) fn state(mcp: &Mcp, name: &str) -> ServerState {
    status(mcp, name).state
}

pub(crate) fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().iter().map(|tool| tool.name.clone()).collect()
}

/// Looks again and again until `done`, which must come soon.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process runs. One that has ended and waits to be collected does not.
pub(crate) fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// The hostile server over HTTP. Ends with this.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    child: Child,
}

impl HttpServer {
    pub(crate) fn start(modes: &[&str]) -> Self {
        let server = hostile(&[&["http"], modes].concat());
        let args = server["args"].as_array().expect("arguments");
        let mut child = Command::new("python3")
            .args(args.iter().filter_map(Value::as_str))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut url = String::new();
        let output = child.stdout.take().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut url)
            .expect("a line");
        Self { url: url.trim().to_owned(), child }
    }

    pub(crate) fn config(&self) -> Value {
        json!({"url": self.url})
    }

    /// What it was sent: verb, path, method and headers of each request.
    pub(crate) async fn requests(&self) -> Vec<Value> {
        let address = self.url.replace("/mcp", "/requests");
        let body = reqwest::get(address).await.expect("a response").bytes().await.expect("a body");
        serde_json::from_slice(&body).expect("a list")
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the real servers, installed if they are not there yet.
pub(crate) fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/mcp-servers");
        let output = Command::new(&script).output().expect("scripts/mcp-servers can be run");
        assert!(
            output.status.success(),
            "the real MCP servers cannot be installed (scripts/mcp-servers; needs npm, python3 and a \
             network the first time): {}",
            String::from_utf8_lossy(&output.stderr)
        );
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    })
}
