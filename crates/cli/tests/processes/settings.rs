//! What a process gives to its task is the task's, not the owner's.

use std::fs;

use antiphon_model_server::ModelServer;
use serde_json::json;

use crate::anthropic_wire;
use crate::project::{Project, Run};

const WAIT: &str = "until [ -e go ]; do sleep 0.02; done";

fn owner_of(project: &Project, arguments: &[&str]) -> Run {
    project.script("owner", &[WAIT]);
    let mut command = project.run_command("owner", arguments);
    command.env("TZ", "Owner/Zone");
    let mut owner = Run::start(command);
    owner.until_event("tool_started");
    project.wait_for_owner();
    owner
}

#[test]
fn variables_and_permissions_are_those_of_the_process_that_asked() {
    let project = Project::new();
    let _owner = owner_of(&project, &["--mode", "full"]);
    project.script("zone", &["echo $TZ >> zone", "echo more >> zone"]);
    let mut command = project.run_command("zone", &["--mode", "full"]);
    command.env("TZ", "Client/Zone");
    Run::start(command).end().assert_whole();
    assert_eq!(project.read("zone"), "Client/Zone\nmore\n");
    // The owner may do everything, and this one may not write.
    project.script("reads", &["echo written >> zone"]);
    let reads = Run::start(project.run_command("reads", &["--mode", "read-only"])).end();
    reads.assert_whole();
    assert_eq!(project.read("zone"), "Client/Zone\nmore\n");
    let shown = project.succeed(&["tasks", "show", "--json", &reads.task_id()]);
    assert!(!shown.contains("\"is_error\": false"), "{shown}");
}

#[test]
fn the_permissions_of_a_task_are_kept_by_the_next_owner() {
    let project = Project::new();
    let mut owner = owner_of(&project, &["--mode", "full"]);
    project.script("reads", &["sleep 0.3", "echo written >> written"]);
    let mut reads = Run::start(project.run_command("reads", &["--mode", "read-only"]));
    reads.until_event("task_created");
    owner.kill();
    reads.end().assert_whole();
    assert_eq!(project.read("written"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_a_process_reach_its_model_and_no_file() {
    const KEY: &str = "sk-ant-of-the-second-process";
    let model = ModelServer::start(|_, _| anthropic_wire::text("From the model.")).await.unwrap();
    let project = Project::new();
    let owner = owner_of(&project, &["--mode", "full"]);
    let mut command = project.command(&["run", "--model", "anthropic/claude-sonnet-4-5", "Hello"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model.url());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "From the model.");
    // The owner lacks the key, and says so of a task of its own.
    let without = project.output(&["run", "--model", "anthropic/claude-sonnet-4-5", "Hello"]);
    assert_eq!(without.status.code(), Some(2), "{without:?}");
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    for file in fs::read_dir(project.state()).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap_or_default();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{} holds the key", path.display());
    }
}

/// The answer to a request on the project's socket.
fn ask(project: &Project, token: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    project.ask_owner(&head)
}

#[test]
fn a_process_of_another_version_and_a_key_are_refused() {
    let project = Project::new();
    let key = project.json(&["keys", "new", "--name", "ci", "--level", "admin", "--json"]);
    let key = key["secret"].as_str().unwrap();
    let _owner = owner_of(&project, &["--mode", "full"]);
    let token = fs::read_to_string(project.state().join("token")).unwrap();
    let run = json!({
        "version": "0.0.1", "variables": {}, "process": {}, "target": { "new": { "prompt": "go" } },
    })
    .to_string();
    let answer = ask(&project, token.trim(), "/v1/runs", &run);
    assert!(answer.starts_with("HTTP/1.0 409") || answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(answer.contains("use the same version"), "{answer}");
    let answer = ask(&project, key, "/v1/runs", &run);
    assert!(answer.contains(" 403 "), "{answer}");
    assert!(answer.contains("only the project's socket takes this"), "{answer}");
    assert_eq!(project.tasks().len(), 1);
}

#[test]
fn the_base_prompt_of_ad_hoc_agents_is_that_of_the_user() {
    let project = Project::new();
    let call = r#"{ call = { name = "call_agent", arguments = { system_prompt = "Count.", prompt = "go" } } }"#;
    let script = format!(
        "name = \"base\"\n[[reply]]\nwhen = {{ system_contains = \"We count in dozens.\" }}\n\
         steps = [{{ text = \"a dozen\" }}]\n[[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{call}]\n\
         [[reply]]\nsteps = [{{ text = \"{{{{last_result}}}}\" }}]\n"
    );
    fs::write(project.path().join("base.toml"), script).unwrap();
    let run =
        || project.succeed(&["run", "--model", "scripted/base", "--script", "base.toml", "go"]);
    assert!(!run().contains("a dozen"));
    let folder = crate::project_folder::home(project.path()).join(".config/antiphon");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("_adhoc_base.md"), "We count in dozens.").unwrap();
    let said = run();
    assert!(said.contains("a dozen"), "{said}");
}
