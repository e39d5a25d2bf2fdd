//! What file tools changed, as the journal records it.

use antiphon_core::port::{Append, Clock, Expected, JournalLog, SystemClock};
use antiphon_core::{EventBody, SessionId, TaskCreated, TaskId};
use serde_json::{Value, json};

use crate::client::{get, request, say};
use crate::world::TestServer;

const REPORT: &str = "Edited a.txt: 1 replacement at line 1.\n@@ -1 +1 @@\n-a\n+b\n";

fn answer(calls: &[Value]) -> EventBody {
    let now = SystemClock.now();
    let data = json!({"message": {
        "type": "assistant", "content": calls, "stop_reason": "tool_use", "raw_stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1}, "timestamp": now,
    }});
    EventBody::parse("message_appended", &data.to_string()).unwrap()
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
}

fn started(id: &str, name: &str) -> EventBody {
    let data = json!({"tool_call_id": id, "tool_name": name, "effect": "side_effect"});
    EventBody::parse("tool_started", &data.to_string()).unwrap()
}

fn result(id: &str, name: &str, text: &str, is_error: bool) -> EventBody {
    let now = SystemClock.now();
    let data = json!({"message": {
        "type": "tool_result", "tool_call_id": id, "tool_name": name, "is_error": is_error,
        "content": [{"type": "text", "text": text}], "timestamp": now,
    }});
    EventBody::parse("message_appended", &data.to_string()).unwrap()
}

async fn written(server: &TestServer, task: &str, parent: Option<&str>, events: Vec<EventBody>) {
    let parent = parent.map(|parent| TaskId::parse(parent).unwrap());
    let created = TaskCreated {
        root: parent.clone(),
        parent,
        ..TaskCreated::new("x", SessionId::parse(task).unwrap())
    };
    let append = Append {
        task_id: TaskId::parse(task).unwrap(),
        expected: Expected::NoTask,
        at: SystemClock.now(),
        events: [created.into()].into_iter().chain(events).collect(),
        key: None,
    };
    server.journal.append(append).await.unwrap();
}

async fn diff(server: &TestServer, path: &str) -> Value {
    let reply = get(server.address, path).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn a_diff_has_all_edits_and_writes_and_nothing_else() {
    let server = TestServer::new().await;
    let edit = |id: &str, path: &str| call(id, "edit", &json!({"path": path, "edits": []}));
    let write =
        |id: &str, path: &str| call(id, "write", &json!({"path": path, "content": "one\ntwo"}));
    let calls = [
        edit("c1", "a.txt"),
        write("c2", "new.txt"),
        edit("failed", "a.txt"),
        edit("refused", "a.txt"),
        write("same", "a.txt"),
        write("blind", "a.bin"),
        call("shell", "bash", &json!({"command": "rm a.txt"})),
    ];
    let events = vec![
        // Brought along: it did not happen here.
        answer(&[edit("brought", "brought.txt")]),
        result("brought", "edit", REPORT, false),
        answer(&calls),
        started("c1", "edit"),
        started("c2", "write"),
        started("failed", "edit"),
        started("same", "write"),
        started("blind", "write"),
        started("shell", "bash"),
        result("c2", "write", "Created new.txt: 7 bytes, 2 lines.\n", false),
        result("c1", "edit", REPORT, false),
        result("failed", "edit", REPORT, true),
        result("refused", "edit", REPORT, false),
        result("same", "write", "a.txt has exactly this content already.", false),
        result(
            "blind",
            "write",
            "Overwrote a.bin: 7 bytes, 2 lines.\n[the old file was not UTF-8: no diff]\n",
            false,
        ),
        result("shell", "bash", "@@ -1 +1 @@\n-a\n+b\n", false),
    ];
    written(&server, "t", None, events).await;
    let found = diff(&server, "/v1/tasks/t/diff").await;
    let changes: Vec<Value> = found["changes"].as_array().unwrap().clone();
    let brief = |change: &Value| {
        ["tool_call_id", "tool", "path", "seq", "cut"].map(|field| change[field].clone())
    };
    assert_eq!(
        changes.iter().map(brief).collect::<Vec<_>>(),
        [
            [json!("c2"), json!("write"), json!("new.txt"), json!(11), json!(false)],
            [json!("c1"), json!("edit"), json!("a.txt"), json!(12), json!(false)],
            [json!("blind"), json!("write"), json!("a.bin"), json!(16), json!(true)],
        ]
    );
    assert_eq!(
        changes[0]["diff"],
        "--- /dev/null\n+++ new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    );
    assert_eq!(changes[1]["diff"], "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!((&changes[2]["diff"], &found["truncated"]), (&json!(""), &json!(false)));
    assert!(found["note"].as_str().unwrap().contains("commands"), "{found}");
    for kind in ["text/x-diff", "text/plain; q=0.9"] {
        let text = request(server.address, "GET", "/v1/tasks/t/diff", None);
        let text = text.replacen("\r\n", &format!("\r\naccept: {kind}\r\n"), 1);
        let reply = say(server.address, &text).await;
        assert!(reply.head.contains("content-type: text/"), "{reply:?}");
        let one = changes.iter().map(|change| change["diff"].as_str().unwrap()).collect::<String>();
        assert_eq!(reply.body, one);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_diff_may_include_descendants_and_file_names_cannot_forge_it() {
    let server = TestServer::new().await;
    let change = |id: &str, path: &str| {
        let call = call(id, "edit", &json!({"path": path, "edits": []}));
        vec![answer(&[call]), started(id, "edit"), result(id, "edit", REPORT, false)]
    };
    written(&server, "top", None, change("c1", "top.txt")).await;
    written(&server, "low", Some("top"), change("c1", "x\n--- a/forged\n+++ b/forged")).await;
    let own = diff(&server, "/v1/tasks/top/diff").await;
    assert_eq!(own["changes"].as_array().unwrap().len(), 1);
    let all = diff(&server, "/v1/tasks/top/diff?below=true").await;
    let all = all["changes"].as_array().unwrap();
    let tasks: Vec<&Value> = all.iter().map(|change| &change["task_id"]).collect();
    assert_eq!(tasks, ["top", "low"]);
    let forged = all[1]["diff"].as_str().unwrap();
    assert_eq!(forged.lines().filter(|line| line.starts_with("--- ")).count(), 1, "{forged}");
    for (path, status) in [("/v1/tasks/nobody/diff", 404), ("/v1/tasks/top/diff?below=x", 400)] {
        assert_eq!(get(server.address, path).await.status, status);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_diff_beyond_the_limits_is_marked_as_truncated() {
    let server = TestServer::new().await;
    let content = "x".repeat(60 * 1024);
    let mut events = Vec::new();
    for n in 0..90 {
        let id = format!("c{n}");
        let call = call(&id, "write", &json!({"path": "f", "content": content}));
        events.extend([
            answer(&[call]),
            started(&id, "write"),
            result(&id, "write", "Created f: 61440 bytes, 1 lines.\n", false),
        ]);
    }
    written(&server, "t", None, events).await;
    let found = diff(&server, "/v1/tasks/t/diff").await;
    assert_eq!(found["truncated"], true);
    assert!(found["changes"].as_array().unwrap().len() < 90);
    server.ended().await;
}
