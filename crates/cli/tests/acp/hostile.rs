//! Lines that no editor should send.

use serde_json::json;

use crate::editor::World;

const HELLO: &str = "[[reply]]\nsteps = [{ text = \"Hello.\" }]\n";

#[test]
fn broken_lines_are_answered_with_an_error_and_the_next_one_is_read() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = world.uninitialized("hello");
    let early = editor.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    assert!(editor.ask("initialize", &json!({ "protocolVersion": 99 }))["result"].is_object());
    for line in ["{", "[]", "\u{0}", "\"text\"", "{\"id\":7,\"method\":3}"] {
        editor.write(line);
        assert_eq!(editor.line()["error"]["code"], -32700, "{line}");
    }
    editor.write("{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}");
    editor.write(&format!("\"{}\"", "x".repeat(33 * 1024 * 1024)));
    assert_eq!(editor.line()["error"]["code"], -32600);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "Hi")["result"]["stopReason"], "end_turn");
}

#[test]
fn forged_sessions_and_bad_folders_are_refused() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = world.editor("hello");
    let prompt = editor.prompt("0190-forged", "Hi");
    assert_eq!(prompt["error"]["code"], -32002, "{prompt}");
    for id in ["0190-forged", "../../etc/passwd", ""] {
        let loaded = editor.load(id);
        assert!(loaded["error"].is_object(), "{id}: {loaded}");
    }
    for cwd in ["relative", "/nowhere/at/all", "/"] {
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        let answer = editor.ask("session/new", &params);
        assert!(answer["error"].is_object(), "{cwd}: {answer}");
    }
    let unknown = editor.ask("session/steal", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}
