//! Servers that others wrote: two that speak the older protocol, and one that speaks the newer.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{Effect, InputBlock, RawJson};
use antiphon_mcp::{Mcp, McpOptions, ServerState};
use serde_json::{Value, json};

use crate::world::{
    START, call, config, environment, installed, listening, names, only_text, ready, state, text,
    until, with,
};

/// A server from npm.
pub(crate) fn npm(server: &str, args: &[&str]) -> Value {
    let script =
        installed().join(format!("node_modules/@modelcontextprotocol/{server}/dist/index.js"));
    let mut all = vec![script.display().to_string()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    json!({"command": "node", "args": all})
}

#[tokio::test]
async fn everything_of_server_everything() {
    let workspace = tempfile::tempdir().unwrap();
    let servers =
        json!({"s": with(npm("server-everything", &["stdio"]), json!({"trusted": true}))});
    let options = McpOptions {
        environment: environment(),
        workspace: Some(workspace.path().to_owned()),
        cache_file: None,
        token_folder: None,
    };
    let mcp = Mcp::new(config(servers), options);
    mcp.connect_all(START).await;
    assert_eq!(state(&mcp, "s"), ServerState::Ready, "{:?}", mcp.status());

    assert_eq!(text(&mcp, "echo", json!({"message": "hi"})).await, "Echo: hi");
    assert_eq!(
        text(&mcp, "get-sum", json!({"a": 2, "b": 3.5})).await,
        "The sum of 2 and 3.5 is 5.5."
    );
    assert_eq!(mcp.effect("mcp__s__echo"), Some(Effect::ReadOnly));
    assert_eq!(mcp.effect("mcp__s__toggle-simulated-logging"), Some(Effect::SideEffect));

    let image = call(&mcp, "get-tiny-image", json!({})).await.unwrap();
    assert!(
        image.content.iter().any(|block| {
            matches!(block, InputBlock::Image(image) if image.mime_type() == "image/png" && image.data().len() > 100)
        }),
        "{image:?}"
    );
    let links = text(&mcp, "get-resource-links", json!({"count": 2})).await;
    assert_eq!(links.matches("[a link to the resource demo://").count(), 2, "{links}");
    let reference =
        text(&mcp, "get-resource-reference", json!({"resourceType": "Text", "resourceId": 1}));
    assert!(reference.await.contains("[resource demo://"));
    let weather = text(&mcp, "get-structured-content", json!({"location": "Chicago"})).await;
    assert!(weather.contains("temperature"), "{weather}");

    // It asks for the roots once it is greeted, and offers the tool when it knows that it can.
    until("its tool for roots", || names(&mcp).contains(&"mcp__s__get-roots-list".to_owned()))
        .await;
    let roots = text(&mcp, "get-roots-list", json!({})).await;
    assert!(roots.contains(&workspace.path().display().to_string()), "{roots}");

    let wrong = call(&mcp, "get-sum", json!({"a": 1})).await.unwrap_err();
    assert!(
        matches!(&wrong, ToolError::InvalidArguments { reason, .. } if reason.contains("\"b\""))
    );
    mcp.shutdown(Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_long_operation_tells_how_it_is_doing_and_can_be_canceled() {
    let mcp = ready(npm("server-everything", &["stdio"])).await;
    let (context, result_text) = listening(Cancel::never());
    let arguments = RawJson::parse(r#"{"duration":0.4,"steps":4}"#).unwrap();
    let long = "mcp__s__trigger-long-running-operation";
    let result = mcp.execute(long, &arguments, context).await.unwrap();
    assert!(!result.is_error, "{result:?}");
    assert_eq!(result_text.lock().unwrap().len(), 4);

    let (fire, fired) = tokio::sync::oneshot::channel::<()>();
    let (context, result_text) = listening(Cancel::when(async { drop(fired.await) }));
    let arguments = RawJson::parse(r#"{"duration":100,"steps":1000}"#).unwrap();
    let running = mcp.execute(long, &arguments, context);
    let canceling = async {
        until("progress", || !result_text.lock().unwrap().is_empty()).await;
        drop(fire);
        Instant::now()
    };
    let (result, canceled) = tokio::join!(running, canceling);
    assert_eq!(result, Err(ToolError::Canceled));
    assert!(canceled.elapsed() < Duration::from_secs(5));
    assert_eq!(text(&mcp, "echo", json!({"message": "hi"})).await, "Echo: hi");
}

#[tokio::test]
async fn server_everything_over_http_and_after_a_restart() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut server = everything_http(port);
    let mcp = ready(json!({"url": url})).await;
    assert_eq!(text(&mcp, "echo", json!({"message": "hi"})).await, "Echo: hi");
    let (context, result_text) = listening(Cancel::never());
    let arguments = RawJson::parse(r#"{"duration":0.2,"steps":2}"#).unwrap();
    let long = "mcp__s__trigger-long-running-operation";
    assert!(!mcp.execute(long, &arguments, context).await.unwrap().is_error);
    assert_eq!(result_text.lock().unwrap().len(), 2);

    // Its sessions are gone with it; ours is begun anew.
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    server = everything_http(port);
    assert_eq!(text(&mcp, "echo", json!({"message": "again"})).await, "Echo: again");
    mcp.shutdown(Duration::from_secs(3)).await;
    drop(server);
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it and waits until it listens.
fn everything_http(port: u16) -> Killed {
    let server = npm("server-everything", &["streamableHttp"]);
    let args = server["args"].as_array().unwrap();
    let child = Command::new("node")
        .args(args.iter().filter_map(Value::as_str))
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < START, "it does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Killed(child)
}

#[tokio::test]
async fn server_filesystem_works_within_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let file = path.join("note.txt").display().to_string();
    let mcp = ready(npm("server-filesystem", &[&path.display().to_string()])).await;
    let written = text(&mcp, "write_file", json!({"path": file, "content": "täglich\n"})).await;
    assert!(written.contains("Successfully wrote"), "{written}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "täglich\n");
    assert_eq!(text(&mcp, "read_text_file", json!({"path": file})).await, "täglich\n");
    let edit = json!({"path": file, "edits": [{"oldText": "täglich", "newText": "daily"}]});
    assert!(text(&mcp, "edit_file", edit).await.contains("+daily"));
    let listed = text(&mcp, "list_directory", json!({"path": path})).await;
    assert_eq!(listed, "[FILE] note.txt");
    let outside = call(&mcp, "read_text_file", json!({"path": "/etc/hostname"})).await.unwrap();
    assert!(outside.is_error && only_text(&outside).contains("denied"), "{outside:?}");
    assert_eq!(mcp.effect("mcp__s__read_text_file"), Some(Effect::SideEffect));
}

#[tokio::test]
async fn server_time_speaks_the_newer_protocol() {
    let program = installed().join("python/bin/mcp-server-time");
    let mcp = ready(json!({"command": program, "args": ["--local-timezone", "UTC"]})).await;
    assert_eq!(names(&mcp), ["mcp__s__convert_time", "mcp__s__get_current_time"]);
    let converted = text(
        &mcp,
        "convert_time",
        json!({"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}),
    )
    .await;
    assert!(converted.contains("T03:00:00+00:00"), "{converted}");
    let failed = call(&mcp, "get_current_time", json!({"timezone": "Nowhere/Land"})).await.unwrap();
    assert!(failed.is_error, "{failed:?}");
    let context = ToolContext::trial(Cancel::when(std::future::ready(())));
    let arguments = RawJson::parse(r#"{"timezone":"UTC"}"#).unwrap();
    let canceled = mcp.execute("mcp__s__get_current_time", &arguments, context).await;
    assert_eq!(canceled, Err(ToolError::Canceled));
}
