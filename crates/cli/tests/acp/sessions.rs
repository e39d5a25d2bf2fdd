//! Sessions: listed, loaded, resumed, closed; modes and options.

use std::fs;

use serde_json::json;

use crate::editor::World;

const WRITES: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"write\", arguments = { path = \"a.txt\", content = \"new\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"written\" }]\n";

const HELLO: &str = "[[reply]]\nsteps = [{ text = \"Hello.\" }]\n";

const STALLS: &str = "[[reply]]\nsteps = [{ text = \"One moment\" }, { stall = true }]\n";

#[test]
fn a_session_is_listed_loaded_and_continued_by_another_process() {
    let world = World::new(&[("hello", HELLO)]);
    let mut first = world.editor("hello");
    let session = first.new_session();
    first.prompt(&session, "Hi");
    first.kill();
    let mut second = world.editor("hello");
    let listed = second.ask("session/list", &json!({}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], *session, "{listed}");
    let loaded = second.load(&session);
    assert!(loaded["result"]["configOptions"].is_array(), "{loaded}");
    let shown: Vec<(&str, &str)> = second
        .updates
        .iter()
        .map(|it| (it["sessionUpdate"].as_str().unwrap(), it["content"]["text"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("user_message_chunk", "Hi"), ("agent_message_chunk", "Hello.")]);
    assert_eq!(second.prompt(&session, "Again")["result"]["stopReason"], "end_turn");
    let sessions = world.json(&["sessions", "list", "--json"]);
    assert_eq!(sessions[0]["tasks"], 2, "{sessions}");
}

#[test]
fn two_editors_and_a_command_work_in_one_project() {
    let world = World::new(&[("hello", HELLO)]);
    let (mut one, mut other) = (world.editor("hello"), world.editor("hello"));
    let (mine, theirs) = (one.new_session(), other.new_session());
    assert_eq!(one.prompt(&mine, "Hi")["result"]["stopReason"], "end_turn");
    assert_eq!(other.prompt(&theirs, "Hi")["result"]["stopReason"], "end_turn");
    let run = world.command(&["run", "--model", "scripted/hello", "Hi"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn modes_and_options_can_be_changed_and_unknown_ones_are_refused() {
    let world = World::new(&[("writes", WRITES)]);
    let mut editor = world.editor("writes");
    let session = editor.new_session();
    let mode = json!({ "sessionId": session, "modeId": "read-only" });
    assert!(editor.ask("session/set_mode", &mode)["result"].is_object());
    let update = editor.until_update(|it| it["sessionUpdate"] == "config_option_update");
    assert_eq!(update["configOptions"][0]["currentValue"], "read-only", "{update}");
    for (option, value) in [("mode", "god"), ("agent", "nobody"), ("model", "x"), ("size", "1")] {
        let params = json!({ "sessionId": session, "configId": option, "value": value });
        let answer = editor.ask("session/set_config_option", &params);
        assert_eq!(answer["error"]["code"], -32602, "{option}: {answer}");
    }
    editor.prompt(&session, "Hi");
    assert!(!world.path().join("a.txt").exists(), "a read-only task wrote a file");
    let closed = editor.ask("session/close", &json!({ "sessionId": session }));
    assert!(closed["result"].is_object(), "{closed}");
    assert_eq!(editor.prompt(&session, "Hi")["error"]["code"], -32002);
}

#[test]
fn a_session_that_is_loaded_again_keeps_its_turn() {
    let world = World::new(&[("stalls", STALLS)]);
    let mut editor = world.editor("stalls");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Hi");
    editor.until_update(|update| update["content"]["text"] == "One moment");
    assert!(editor.load(&session)["result"].is_object());
    let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    assert!(editor.ask("session/resume", &params)["result"].is_object());
    let second = editor.prompt(&session, "Again");
    assert!(second["error"].is_object(), "a turn runs: {second}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
}

#[test]
fn an_open_session_is_loaded_again_when_no_further_one_can_be_opened() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = world.editor("hello");
    let session = editor.new_session();
    editor.prompt(&session, "Hi");
    editor.updates.clear();
    for _ in 1..256 {
        editor.new_session();
    }
    let params = json!({ "cwd": world.path(), "mcpServers": [] });
    assert!(editor.ask("session/new", &params)["error"].is_object());
    assert!(editor.load(&session)["result"].is_object());
    assert_eq!(editor.prompt(&session, "Again")["result"]["stopReason"], "end_turn");
}

#[test]
fn commands_of_files_are_listed_and_their_prompts_are_sent() {
    let echo = "[[reply]]\nsteps = [{ text = \"{{last_user}}\" }]\n";
    let world = World::new(&[("echo", echo)]);
    let commands = crate::project_folder::home(world.path()).join(".claude/commands");
    fs::create_dir_all(&commands).unwrap();
    let text = "---\ndescription: Fixes.\nargument-hint: [issue]\n---\nFix $1 of $ARGUMENTS.\n";
    fs::write(commands.join("fix.md"), text).unwrap();
    let mut editor = world.editor("echo");
    let session = editor.new_session();
    let update = editor.until_update(|it| it["sessionUpdate"] == "available_commands_update");
    let command = json!({ "name": "fix", "description": "Fixes.", "input": { "hint": "[issue]" } });
    assert_eq!(update["availableCommands"], json!([command]));
    assert_eq!(editor.prompt(&session, "/fix 12 now")["result"]["stopReason"], "end_turn");
    let said = |text: &str| editor.updates.iter().any(|it| it["content"]["text"] == text);
    assert!(said("Fix 12 of 12 now."), "{:#?}", editor.updates);
    assert_eq!(editor.prompt(&session, "/unknown 12")["result"]["stopReason"], "end_turn");
}
