//! Version 2 of the protocol, a draft. Everything that is sent has to be of the official schema, which reads what it
//! does not know as `Other`: that is refused here.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks at one kind of update of many")]

use agent_client_protocol_schema::v2;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::editor::{Editor, World};

const HELLO: &str = "[[reply]]\nsteps = [{ text = \"Hello, \" }, { text = \"editor.\" }]\n";

const ASKS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"touch asked.txt\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"done\" }]\n";

const EDITS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"write\", arguments = { path = \"a.txt\", content = \"one\\ntwo\\n\" } } }]\n\
    [[reply]]\nwhen = { turn = 1 }\nsteps = [{ call = { name = \"edit\", arguments = { path = \"a.txt\", edits = [{ old = \"two\", new = \"three\" }] } } }]\n\
    [[reply]]\nsteps = [{ text = \"edited\" }]\n";

const STALLS: &str = "[[reply]]\nsteps = [{ text = \"One moment\" }, { stall = true }]\n";

const BREAKS: &str =
    "[[reply]]\nsteps = [{ error = { kind = \"invalid_request\", message = \"it broke\" } }]\n";

/// Reads a value as the schema has it. Nothing may be lost on the way.
fn typed<T: DeserializeOwned + serde::Serialize>(value: &Value) -> T {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), value, "the schema has other fields");
    read
}

/// All updates so far, as the schema has them.
fn updates(editor: &Editor) -> Vec<v2::SessionUpdate> {
    let typed = |update: &Value| match typed(update) {
        v2::SessionUpdate::Other(other) => panic!("the schema has no such update: {other:?}"),
        known => known,
    };
    editor.updates.iter().map(typed).collect()
}

fn editor(world: &World, script: &str) -> Editor {
    let mut editor = world.uninitialized(script);
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": 2, "info": info, "capabilities": {} });
    let answer = editor.ask("initialize", &params);
    let answer: v2::InitializeResponse = typed(&answer["result"]);
    assert_eq!(answer.protocol_version.as_u16(), 2);
    let session = answer.capabilities.session.unwrap();
    assert!(session.prompt.unwrap().image.is_some());
    editor
}

/// A session, opened without the fields that version 2 made optional.
fn new_session(editor: &mut Editor, world: &World) -> String {
    let answer = editor.ask("session/new", &json!({ "cwd": world.path() }));
    assert_eq!(editor.updates, Vec::<Value>::new(), "nothing precedes the answer");
    let answer: v2::NewSessionResponse = typed(&answer["result"]);
    let ids: Vec<_> = answer.config_options.iter().map(|it| it.config_id.0.to_string()).collect();
    assert_eq!(ids, ["mode", "model", "agent"]);
    answer.session_id.to_string()
}

/// Waits for the end of a turn. Returns its stop reason.
fn idle(editor: &mut Editor) -> Value {
    let is_end = |it: &Value| it["state"] == "idle" && it.get("stopReason").is_some();
    editor.until_update(is_end)["stopReason"].clone()
}

#[test]
fn a_prompt_is_answered_when_the_journal_has_it_and_the_state_says_the_end() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = editor(&world, "hello");
    let session = new_session(&mut editor, &world);
    let answer = editor.prompt(&session, "Hi");
    let answer: v2::PromptResponse = typed(&answer["result"]);
    assert_eq!(idle(&mut editor), "end_turn");
    let said: Vec<String> = updates(&editor)
        .into_iter()
        .map(|update| match update {
            v2::SessionUpdate::StateUpdate(v2::StateUpdate::Running(_)) => "running".to_owned(),
            v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(_)) => "idle".to_owned(),
            v2::SessionUpdate::UserMessage(message) => {
                assert_eq!(message.message_id, answer.message_id);
                "user".to_owned()
            }
            v2::SessionUpdate::AgentMessageChunk(_) => "agent".to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((said[0].as_str(), said[1].as_str()), ("running", "user"), "{said:?}");
    assert_eq!(said.last().unwrap(), "idle", "{said:?}");
    assert_eq!(editor.text(), "Hello, editor.");
    editor.updates.clear();
    assert!(editor.prompt(&session, "Again")["result"]["messageId"].is_string());
    assert_eq!(idle(&mut editor), "end_turn", "the next turn may begin");
}

#[test]
fn a_resumed_session_is_replayed_with_the_same_ids_and_then_its_state_is_told() {
    let world = World::new(&[("hello", HELLO)]);
    let mut first = editor(&world, "hello");
    let session = new_session(&mut first, &world);
    let sent = first.prompt(&session, "Hi")["result"]["messageId"].clone();
    idle(&mut first);
    first.kill();
    let mut second = editor(&world, "hello");
    let plain = json!({ "sessionId": session, "cwd": world.path() });
    let answer = second.ask("session/resume", &plain);
    let _: v2::ResumeSessionResponse = typed(&answer["result"]);
    let state = json!({ "sessionUpdate": "state_update", "state": "idle" });
    assert_eq!(second.updates, std::slice::from_ref(&state), "no message is replayed");
    second.updates.clear();
    let mut replayed = plain.clone();
    replayed["replayFrom"] = json!({ "type": "start" });
    assert!(second.ask("session/resume", &replayed)["result"].is_object());
    updates(&second);
    let mut kinds: Vec<_> = second.updates.iter().map(|it| it["sessionUpdate"].clone()).collect();
    kinds.dedup();
    assert_eq!(kinds, ["user_message", "agent_message_chunk", "state_update"]);
    assert_eq!(second.updates[0]["messageId"], sent);
    assert_eq!(second.updates.last(), Some(&state));
    // The answer has two parts, and is one message.
    assert_eq!(second.text(), "Hello, editor.");
    assert_eq!(
        second.updates[1]["messageId"],
        second.updates[second.updates.len() - 2]["messageId"]
    );
    replayed["replayFrom"] = json!({ "type": "_middle" });
    assert_eq!(second.ask("session/resume", &replayed)["error"]["code"], -32602);
    let listed = second.ask("session/list", &json!({}));
    let listed: v2::ListSessionsResponse = typed(&listed["result"]);
    assert_eq!(listed.sessions[0].session_id.to_string(), session);
    assert!(second.ask("session/close", &json!({ "sessionId": session }))["result"].is_object());
}

#[test]
fn a_question_has_a_title_and_its_call_and_the_state_says_that_a_person_is_waited_for() {
    let world = World::new(&[("asks", ASKS)]);
    let mut editor = editor(&world, "asks");
    let session = new_session(&mut editor, &world);
    let prompt = editor.start_prompt(&session, "Touch it");
    let question = editor.until_asked();
    let request: v2::RequestPermissionRequest = typed(&question["params"]);
    assert!(request.title.contains("touch asked.txt"), "{}", request.title);
    let Some(v2::RequestPermissionSubject::ToolCall(subject)) = request.subject else {
        panic!("{question}");
    };
    editor.until_update(|it| it["state"] == "requires_action");
    let shown = |it: &Value| it["toolCallId"] == json!(subject.tool_call.tool_call_id);
    editor.until_update(shown);
    let chosen = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    editor.write(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": chosen }).to_string());
    assert_eq!(idle(&mut editor), "end_turn");
    assert!(world.path().join("asked.txt").exists());
    assert!(editor.answer(prompt)["result"]["messageId"].is_string());
    let states: Vec<_> = updates(&editor)
        .iter()
        .filter_map(|update| match update {
            v2::SessionUpdate::StateUpdate(state) => Some(match state {
                v2::StateUpdate::Running(_) => "running",
                v2::StateUpdate::Idle(_) => "idle",
                v2::StateUpdate::RequiresAction(_) => "requires_action",
                other => panic!("{other:?}"),
            }),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle"]);
}

#[test]
fn an_unknown_outcome_of_a_question_allows_nothing() {
    let world = World::new(&[("asks", ASKS)]);
    let mut editor = editor(&world, "asks");
    let session = new_session(&mut editor, &world);
    editor.start_prompt(&session, "Touch it");
    let question = editor.until_asked();
    let unknown = json!({ "outcome": { "outcome": "_approved", "optionId": "allow_once" } });
    editor.write(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": unknown }).to_string());
    let is_note =
        |it: &Value| it["content"]["text"].as_str().is_some_and(|it| it.contains("approvals"));
    editor.until_update(is_note);
    let approvals = world.json(&["approvals", "list", "--json"]);
    assert_eq!(approvals[0]["status"], "pending", "{approvals}");
    assert!(!world.path().join("asked.txt").exists());
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(idle(&mut editor), "cancelled");
}

#[test]
fn changes_of_files_are_shown_with_their_patch() {
    let world = World::new(&[("edits", EDITS)]);
    let mut editor = editor(&world, "edits");
    let session = new_session(&mut editor, &world);
    editor.prompt(&session, "Edit");
    assert_eq!(idle(&mut editor), "end_turn");
    let path = world.path().join("a.txt").display().to_string();
    let mut diffs = Vec::new();
    for update in updates(&editor) {
        let v2::SessionUpdate::ToolCallUpdate(call) = update else { continue };
        for content in call.content.value().into_iter().flatten() {
            let v2::ToolCallContent::Diff(diff) = content else { continue };
            let operation = serde_json::to_value(&diff.changes[0]).unwrap();
            assert_eq!(operation["path"], *path);
            let text = diff.patch.as_ref().map(|patch| patch.text.clone());
            diffs.push((operation["operation"].as_str().unwrap().to_owned(), text));
        }
    }
    let added = format!(
        "diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n+++ {path}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    // Nothing of the file is read: a write that was done before it is shown counts as a change of a file that is there.
    let shown_late = ("modify".to_owned(), None);
    assert!(
        diffs[0] == ("add".to_owned(), Some(added)) || diffs[0] == shown_late,
        "{:?}",
        diffs[0]
    );
    let (operation, change) = diffs.last().unwrap();
    assert_eq!(operation, "modify");
    let change = change.as_ref().unwrap();
    assert!(change.contains("-two") && change.contains("+three"), "{change}");
}

#[test]
fn a_cancel_and_a_failure_are_told_by_the_state() {
    let world = World::new(&[("stalls", STALLS), ("breaks", BREAKS)]);
    let mut editor = editor(&world, "stalls");
    let session = new_session(&mut editor, &world);
    assert!(editor.prompt(&session, "Hi")["result"]["messageId"].is_string());
    editor.until_update(|update| update["content"]["text"] == "One moment");
    let second = editor.prompt(&session, "Again");
    assert_eq!(second["error"]["code"], -32602, "one turn at a time: {second}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(idle(&mut editor), "cancelled");
    let model = json!({ "sessionId": session, "configId": "model", "type": "id", "value": "scripted/breaks" });
    let answer = editor.ask("session/set_config_option", &model);
    let _: v2::SetSessionConfigOptionResponse = typed(&answer["result"]);
    editor.updates.clear();
    assert!(editor.prompt(&session, "Hi")["result"]["messageId"].is_string());
    assert_eq!(idle(&mut editor), "error");
    updates(&editor);
    let end = editor.updates.last().unwrap();
    assert!(end["error"]["message"].as_str().unwrap().contains("it broke"), "{end}");
}

#[test]
fn methods_of_version_1_alone_do_not_exist_and_batches_are_read() {
    let world = World::new(&[("hello", HELLO)]);
    let mut editor = editor(&world, "hello");
    let session = new_session(&mut editor, &world);
    for method in ["session/load", "session/set_mode", "authenticate", "auth/login"] {
        let params = json!({ "sessionId": session, "cwd": world.path(), "modeId": "full" });
        assert_eq!(editor.ask(method, &params)["error"]["code"], -32601, "{method}");
    }
    editor.write("[]");
    assert_eq!(editor.line()["error"]["code"], -32600);
    editor.write("[1]");
    assert_eq!(editor.line()["error"]["code"], -32600);
    let list =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "session/list", "params": {} });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    editor.write(&json!([list(900), cancel, list(901)]).to_string());
    let mut answered: Vec<u64> = (0..2).map(|_| editor.line()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, [900, 901]);
    // The version stays.
    let again = editor.ask("initialize", &json!({ "protocolVersion": 1 }));
    assert_eq!(again["result"]["protocolVersion"], 2, "{again}");
}

const LISTS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"todo\", arguments = { items = [{ text = \"read\", status = \"done\" }] } } }]\n\
    [[reply]]\nsteps = [{ text = \"listed\" }]\n";

#[test]
fn plans_and_commands_have_the_shapes_of_version_2() {
    let world = World::new(&[("lists", LISTS)]);
    let commands = crate::project_folder::home(world.path()).join(".claude/commands");
    std::fs::create_dir_all(&commands).unwrap();
    let text = "---\ndescription: Fixes.\nargument-hint: [issue]\n---\nFix $1.\n";
    std::fs::write(commands.join("fix.md"), text).unwrap();
    let mut editor = editor(&world, "lists");
    let opened = editor.ask("session/new", &json!({ "cwd": world.path() }));
    let opened: v2::NewSessionResponse = typed(&opened["result"]);
    let v2::AvailableCommand::Command(command) = &opened.available_commands[0] else {
        panic!("{opened:?}");
    };
    assert_eq!(command.name, "fix");
    let Some(v2::AvailableCommandInput::Text(input)) = &command.input else {
        panic!("{opened:?}");
    };
    assert_eq!(input.hint, "[issue]");
    editor.prompt(&opened.session_id.to_string(), "Plan");
    assert_eq!(idle(&mut editor), "end_turn");
    let plan = updates(&editor).into_iter().find_map(|update| match update {
        v2::SessionUpdate::PlanUpdate(update) => Some(update.plan),
        _ => None,
    });
    let Some(v2::PlanUpdateContent::Items(items)) = plan else { panic!("{plan:?}") };
    assert_eq!(items.entries[0].content, "read");
}
