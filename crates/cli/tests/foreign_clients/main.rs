//! Codex CLI and Claude Code, unchanged, of the versions that `scripts/foreign-clients` names. Each reads a file, edits
//! it and runs a command through a server whose model is scripted.

use std::path::Path;
use std::process::{Command, Output};

const CODEX_SCRIPT: &str = r#"
name = "codex"
[[reply]]
when = { tool_offered = "exec_command", results_since_user = 0 }
step = [{ text = "Reading." }, { call = { name = "exec_command", arguments = { cmd = "cat notes.txt" } } }]
[[reply]]
when = { tool_offered = "exec_command", results_since_user = 1 }
step = [{ call = { name = "exec_command", arguments = { cmd = "sed -i s/old/new/ notes.txt" } } }]
[[reply]]
when = { tool_offered = "exec_command", results_since_user = 2 }
step = [{ call = { name = "exec_command", arguments = { cmd = "wc -l notes.txt" } } }]
[[reply]]
step = [{ text = "Codex has done it: {{last_result}}" }]
"#;

const CLAUDE_SCRIPT: &str = r#"
name = "claude"
[[reply]]
when = { tool_offered = "Read", results_since_user = 0 }
step = [{ text = "Reading." }, { call = { name = "Read", arguments = { file_path = "FOLDER/work/notes.txt" } } }]
[[reply]]
when = { tool_offered = "Edit", results_since_user = 1 }
step = [{ call = { name = "Edit", arguments = { file_path = "FOLDER/work/notes.txt", old_string = "old", new_string = "new" } } }]
[[reply]]
when = { tool_offered = "Bash", results_since_user = 2 }
step = [{ call = { name = "Bash", arguments = { command = "wc -l notes.txt", description = "Counts" } } }]
[[reply]]
step = [{ text = "Claude has done it: {{last_result}}" }]
"#;

const SETTINGS: &str = r#"
model = "scripted/codex"
[scripts]
codex = "codex.toml"
claude = "claude.toml"
[aliases]
"claude-*" = "scripted/claude"
"#;

const CODEX_SETTINGS: &str = r#"
model = "scripted/codex"
model_provider = "antiphon"
[model_providers.antiphon]
name = "Antiphon"
base_url = "http://127.0.0.1:7991/v1"
wire_api = "responses"
env_key = "TOKEN"
[analytics]
enabled = false
"#;

fn text(output: &Output) -> String {
    let (out, wrong) = (&output.stdout, &output.stderr);
    format!("{}\n{}", String::from_utf8_lossy(out), String::from_utf8_lossy(wrong))
}

#[test]
fn codex_and_claude_code_read_edit_and_run_through_a_server() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = Command::new(here.join("../../scripts/foreign-clients")).output().unwrap();
    assert!(installed.status.success(), "{}", text(&installed));
    let clients = String::from_utf8(installed.stdout).unwrap().trim().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir_all(folder.path().join("home/.codex")).unwrap();
    write("codex.toml", CODEX_SCRIPT);
    write("claude.toml", &CLAUDE_SCRIPT.replace("FOLDER", place));
    write("config.toml", SETTINGS);
    write("home/.codex/config.toml", CODEX_SETTINGS);
    let script = here.join("tests/foreign_clients/run.sh");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "bash"])
        .arg(script)
        .args([clients.as_str(), env!("CARGO_BIN_EXE_antiphon"), place])
        .output()
        .unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in [
        "Codex has done it",
        "codex: new line",
        "Claude has done it",
        "claude: new line",
        "1 notes.txt",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
