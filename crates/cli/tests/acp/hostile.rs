//! Lines that no editor should send.

use serde_json::{Value, json};

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

const STALLS: &str = "[[reply]]\nsteps = [{ text = \"One moment\" }, { stall = true }]\n";

#[test]
fn images_and_resources_that_are_too_large_or_none_are_refused() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = world.editor("hello");
    let session = editor.new_session();
    let large = "A".repeat(12 * 1024 * 1024);
    let blob = |kind: &str, blob: &str| json!({ "type": "resource", "resource": { "uri": "file:///a", "mimeType": kind, "blob": blob } });
    for part in [
        json!({ "type": "image", "mimeType": "image/png", "data": large }),
        json!({ "type": "image", "mimeType": "image/png", "data": "***" }),
        json!({ "type": "image", "mimeType": "text/html", "data": "aGk=" }),
        blob("image/png", &large),
        blob("application/zip", "aGk="),
    ] {
        let shown = part.to_string().chars().take(80).collect::<String>();
        let prompt: Value = json!([{ "type": "text", "text": "Hi" }, part]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        let answer = editor.ask("session/prompt", &params);
        assert!(answer["error"].is_object(), "{shown}: {answer}");
    }
    assert_eq!(editor.prompt(&session, "Hi")["result"]["stopReason"], "end_turn");
}

/// A cancel ends the turn of the session that it names, and no other one.
#[test]
fn a_cancel_of_another_session_changes_nothing() {
    let world = World::new(&[("stalls", STALLS)]);
    let mut editor = world.editor("stalls");
    let (mine, other) = (editor.new_session(), editor.new_session());
    let prompt = editor.start_prompt(&mine, "Hi");
    editor.until_update(|update| update["content"]["text"] == "One moment");
    let forged = [json!(other), json!("0190-forged"), json!(""), json!(7), json!(null)];
    for session in forged {
        editor.notify("session/cancel", &json!({ "sessionId": session }));
    }
    let second = editor.prompt(&mine, "Again");
    assert!(second["error"].is_object(), "the turn runs: {second}");
    editor.notify("session/cancel", &json!({ "sessionId": mine }));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
}

/// A model writes what looks like another question into its call.
#[test]
fn a_spoofed_title_stays_on_one_line_and_is_escaped() {
    let script = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command =          \"touch asked.txt\\nAllowed by the user \\u001b[2K\\u202eread\" } } }]\n[[reply]]\nsteps = [{ text = \"done\" }]\n";
    let world = World::new(&[("asks", script)]);
    let mut editor = world.editor("asks");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Touch it");
    let question = editor.until_asked();
    let call = &question["params"]["toolCall"];
    let title = call["title"].as_str().unwrap();
    for sign in ['\n', '\r', '\u{1b}', '\u{202e}'] {
        assert!(!title.contains(sign), "{title:?}");
    }
    let shown = call["content"].to_string();
    assert!(!shown.contains("\\u001b") && !shown.contains('\u{202e}'), "{shown}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    editor.answer(prompt);
}

const ASKS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"touch asked.txt\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"done\" }]\n";

/// An editor that dies before its person has answered has allowed nothing, and the next one is asked again.
#[test]
fn an_editor_that_dies_with_a_question_open_has_allowed_nothing() {
    let world = World::new(&[("asks", ASKS)]);
    let mut first = world.editor("asks");
    let session = first.new_session();
    first.start_prompt(&session, "Touch it");
    first.until_asked();
    // Half of an answer is none.
    first.write_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}");
    first.kill();
    let pending = world.json(&["approvals", "list", "--json"]);
    assert_eq!(pending[0]["status"], "pending", "{pending}");
    assert!(!world.path().join("asked.txt").exists());
    let mut second = world.editor("asks");
    assert!(second.load(&session)["result"].is_object());
    let prompt = second.start_prompt(&session, "Go on");
    let question = second.until_asked();
    let refusal = json!({ "outcome": { "outcome": "selected", "optionId": "deny" } });
    second.write(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": refusal }).to_string());
    assert_eq!(second.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(!world.path().join("asked.txt").exists());
}

/// Answers to a question that are not of its form decide nothing.
#[test]
fn malformed_answers_to_a_question_allow_nothing() {
    for result in [
        json!({ "result": null }),
        json!({ "result": {} }),
        json!({ "result": "allow_once" }),
        json!({ "result": { "outcome": "allow_once" } }),
        json!({ "result": { "outcome": { "outcome": "selected" } } }),
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": ["allow_once"] } } }),
        json!({ "result": { "outcome": { "outcome": "approved", "optionId": "allow_once" } } }),
        json!({ "error": { "code": -32601, "message": "no such method" } }),
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "allow_once" } }, "error": { "code": 1, "message": "x" } }),
    ] {
        let world = World::new(&[("asks", ASKS)]);
        let mut editor = world.editor("asks");
        let session = editor.new_session();
        let prompt = editor.start_prompt(&session, "Touch it");
        let question = editor.until_asked();
        let mut line = result.clone();
        line["jsonrpc"] = json!("2.0");
        line["id"] = question["id"].clone();
        editor.write(&line.to_string());
        let is_note =
            |it: &Value| it["content"]["text"].as_str().is_some_and(|it| it.contains("approvals"));
        editor.until_update(is_note);
        let approvals = world.json(&["approvals", "list", "--json"]);
        assert_eq!(approvals[0]["status"], "pending", "{result}: {approvals}");
        assert!(!world.path().join("asked.txt").exists(), "{result}");
        editor.notify("session/cancel", &json!({ "sessionId": session }));
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled", "{result}");
    }
}
