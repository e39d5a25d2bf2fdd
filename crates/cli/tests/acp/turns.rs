//! Prompts: answers, tool calls, questions, and how a turn ends.

use serde_json::json;

use crate::editor::World;

const HELLO: &str = "[[reply]]\nsteps = [{ text = \"Hello, \" }, { text = \"editor.\" }]\n";

const ASKS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"touch asked\\u202e.txt\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"done\" }]\n";

const WRITES: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"write\", arguments = { path = \"a.txt\", content = \"new\\n\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"written\" }]\n";

const SLEEPS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"sleep 600\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"woke\" }]\n";

#[test]
fn an_answer_is_streamed_once_and_the_turn_ends() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = world.editor("hello");
    let session = editor.new_session();
    let answer = editor.prompt(&session, "Hi");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.text(), "Hello, editor.");
    editor.prompt(&session, "Again");
    assert_eq!(editor.text(), "Hello, editor.Hello, editor.");
    let sessions = world.json(&["sessions", "list", "--json"]);
    assert_eq!(sessions[0]["session_id"], *session, "{sessions}");
    assert_eq!(sessions[0]["tasks"], 2, "{sessions}");
    assert_eq!(editor.close(), Some(0));
}

#[test]
fn a_change_of_a_file_is_shown_as_a_diff_with_its_place() {
    let world = World::new(&[("writes", WRITES)]);
    let mut editor = world.editor("writes");
    let session = editor.new_session();
    let answer = editor.prompt(&session, "Write it");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let call = editor.until_update(|update| update["sessionUpdate"] == "tool_call");
    let path = world.path().join("a.txt").display().to_string();
    assert_eq!(call["kind"], "edit", "{call}");
    assert_eq!(call["locations"][0]["path"], *path, "{call}");
    let diff = json!({ "type": "diff", "path": path, "newText": "new\n" });
    assert_eq!(call["content"][0], diff, "{call}");
    let ended = editor.until_update(|update| update["status"] == "completed");
    assert_eq!(ended["toolCallId"], call["toolCallId"]);
}

#[test]
fn a_question_shows_the_whole_call_escaped_and_only_a_chosen_option_decides() {
    let world = World::new(&[("asks", ASKS)]);
    let mut editor = world.editor("asks");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Touch it");
    let question = editor.until_asked();
    assert_eq!(question["method"], "session/request_permission");
    let shown = question["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(shown.contains("touch asked\\u{202e}.txt"), "{shown}");
    let options = question["params"]["options"].as_array().unwrap();
    let kinds: Vec<_> = options.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "allow_always", "reject_once"]);
    let refusal = json!({ "outcome": { "outcome": "selected", "optionId": "deny" } });
    let line = json!({ "jsonrpc": "2.0", "id": question["id"], "result": refusal });
    editor.write(&line.to_string());
    let answer = editor.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let approvals = world.json(&["approvals", "list", "--all", "--json"]);
    assert_eq!(approvals[0]["decision"], "deny", "{approvals}");
}

#[test]
fn an_option_that_was_not_offered_allows_nothing() {
    let world = World::new(&[("asks", ASKS)]);
    let mut editor = world.editor("asks");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Touch it");
    let question = editor.until_asked();
    let forged = json!({ "outcome": { "outcome": "selected", "optionId": "full" } });
    let line = json!({ "jsonrpc": "2.0", "id": question["id"], "result": forged });
    editor.write(&line.to_string());
    editor.until_update(|it| {
        it["content"]["text"].as_str().is_some_and(|it| it.contains("approvals"))
    });
    let approvals = world.json(&["approvals", "list", "--json"]);
    assert_eq!(approvals[0]["status"], "pending", "{approvals}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_cancel_ends_the_command_that_runs_and_the_session_goes_on() {
    let world = World::new(&[("sleeps", SLEEPS), ("hello", HELLO)]);
    let mut editor = world.editor("sleeps");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Sleep");
    editor.until_update(|update| update["status"] == "in_progress");
    let second = editor.prompt(&session, "Another");
    assert_eq!(second["error"]["code"], -32602, "one turn at a time: {second}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    let model = json!({ "sessionId": session, "configId": "model", "value": "scripted/hello" });
    editor.ask("session/set_config_option", &model);
    assert_eq!(editor.prompt(&session, "Hi")["result"]["stopReason"], "end_turn");
    assert!(editor.text().ends_with("Hello, editor."), "{}", editor.text());
}

const LISTS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"todo\", arguments = { items = [{ text = \"read\", status = \"done\" }, { text = \"write\", status = \"in_progress\" }, { text = \"test\" }] } } }]\n\
    [[reply]]\nsteps = [{ text = \"listed\" }]\n";

#[test]
fn the_list_of_things_to_do_is_the_plan() {
    let world = World::new(&[("lists", LISTS)]);
    let mut editor = world.editor("lists");
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "Plan")["result"]["stopReason"], "end_turn");
    let plan = editor.until_update(|update| update["sessionUpdate"] == "plan");
    let entries: Vec<_> = plan["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["content"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    assert_eq!(entries, [("read", "completed"), ("write", "in_progress"), ("test", "pending")]);
}
