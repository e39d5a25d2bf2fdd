//! Secrets reach whom they are for, and are found nowhere else: not in logs, not in the journal, not in
//! what is answered.

use std::fs;
use std::path::Path;

use antiphon_model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::project_folder::{home, state};
use crate::server::{Project, Server};

const PROVIDER: &str = "sk-ant-PROVIDER-0123456789";
const WRITTEN: &str = "sk-own-WRITTEN-0123456789";
const WEBHOOK: &str = "hook-WEBHOOK-0123456789";
const MCP: &str = "mcp-SERVER-0123456789";
const PEER: &str = "peer-TOKEN-0123456789abcdefghijkl";

const SCRIPT: &str = r#"
name = "leak"
[[reply]]
when = { turn = 0 }
steps = [{ call = { name = "read", arguments = { path = ".env" } } }]
[[reply]]
when = { turn = 1 }
steps = [{ call = { name = "bash", arguments = { command = "cat .env; env" } } }]
[[reply]]
steps = [{ text = "{{last_result}}" }]
"#;

fn config(url: &str) -> String {
    format!(
        r#"
[scripts]
leak = "leak.toml"
[providers.own]
kind = "openai"
base_url = "{url}"
api_key = "{WRITTEN}"
[providers.own.limits]
retries = 0
[mcp.broken]
command = "/nowhere/server"
env = {{ KEY = "{MCP}" }}
[peers.other]
url = "https://peer.example"
token_env = "PEER"
[webhooks.ci]
agent = "nobody"
secret_env = "HOOK"
"#
    )
}

/// Everything that is written in a folder, but for what is meant to hold secrets.
fn written(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(written(&path));
        } else if kind.is_file() && entry.file_name() != "token" {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}

/// Runs a task and returns everything that is shown of it.
fn told_of(server: &Server, key: &str, model: &str) -> String {
    let body = json!({"message": "go", "model": model}).to_string();
    let (status, task) = server.ask(key, "POST /v1/tasks", "", &body);
    assert_eq!(status, 201, "{task}");
    let id: Value = serde_json::from_str(&task).unwrap();
    let id = id["task_id"].as_str().unwrap();
    let (_, events) = server.ask(key, &format!("GET /v1/tasks/{id}/events"), "", "");
    let (_, shown) = server.ask(key, &format!("GET /v1/tasks/{id}"), "", "");
    events + &shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_found_nowhere_but_where_they_belong() {
    let echo = ModelServer::start(|request, _| {
        let key = request.header("x-api-key").or(request.header("authorization"));
        let message = format!("Incorrect API key provided: {}", key.unwrap());
        Reply::json(401, json!({"error": {"message": message}}).to_string())
    });
    let echo = echo.await.unwrap();
    let url = echo.url();
    tokio::task::spawn_blocking(move || everything_that_can_go_wrong(&url)).await.unwrap();
    let keys: Vec<String> = echo
        .requests()
        .iter()
        .filter_map(|request| request.header("x-api-key").or(request.header("authorization")))
        .map(str::to_owned)
        .collect();
    assert!(keys.contains(&PROVIDER.to_owned()), "it reached its provider: {keys:?}");
    assert!(keys.contains(&format!("Bearer {WRITTEN}")), "it reached its provider: {keys:?}");
}

fn everything_that_can_go_wrong(url: &str) {
    let project = Project::new();
    project.configure(&config(url));
    fs::write(home(project.path()).join(".config/antiphon/leak.toml"), SCRIPT).unwrap();
    let key = project.out(&["keys", "new", "--name", "k", "--level", "write"]).trim().to_owned();
    // The token is made at the first start.
    Server::start(&project).end();
    let token = project.token();
    let secrets = [PROVIDER, WRITTEN, WEBHOOK, PEER, &token];
    fs::write(project.path().join(".env"), format!("PORT=8080\n{}\n", secrets.join("\n"))).unwrap();
    let variables = [
        ("ANTIPHON_LOG", "trace"),
        ("ANTHROPIC_API_KEY", PROVIDER),
        ("ANTHROPIC_BASE_URL", url),
        ("HOOK", WEBHOOK),
        ("PEER", PEER),
    ];
    let server = Server::with(&project, &["--log-format", "json"], &variables);
    let mut reported = Vec::new();
    for model in ["anthropic/claude", "own/model", "scripted/leak"] {
        reported.push((model.to_owned(), told_of(&server, &key, model)));
    }
    assert!(reported[0].1.contains("Incorrect API key provided: [redacted]"), "{}", reported[0].1);
    assert!(reported[1].1.contains("Bearer [redacted]"), "{}", reported[1].1);
    let lines = "PORT=8080\\n".to_owned() + &"[redacted]\\n".repeat(5);
    assert!(reported[2].1.contains(&lines), "as `bash` says it: {}", reported[2].1);
    assert!(reported[2].1.contains("PORT=8080"), "nothing else is taken out: {}", reported[2].1);
    for (line, more) in [
        ("POST /v1/events/ci", format!("webhook-signature: v1,{WEBHOOK}\r\n")),
        ("POST /v1/events/ci", format!("x-hub-signature-256: {WEBHOOK}\r\n")),
        ("GET /v1/models", String::new()),
        ("GET /metrics", String::new()),
        ("GET /v1/approvals?all=true", String::new()),
        ("POST /v1/tasks", String::new()),
    ] {
        reported.push((line.to_owned(), server.ask(&token, line, &more, "{\"message\": 7}").1));
        reported.push((line.to_owned(), server.ask(&format!("{key}x"), line, &more, "{}").1));
    }
    server.end();
    for words in [&["doctor", "--json"][..], &["doctor"], &["models"], &["tasks", "list"]] {
        let output = project.command(words).envs(variables).output().unwrap();
        reported.push((words.join(" "), String::from_utf8_lossy(&output.stdout).into_owned()));
        reported.push((words.join(" "), String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    project.configure(&format!("{}\napi_key = \"{WRITTEN}\" \"{WRITTEN}\"\n", config(url)));
    let output = project.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    reported.push(("a bad file".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()));
    reported.push(("the log".to_owned(), project.log()));
    reported.extend(written(&state(project.path())));
    // What comes behind the id of a key is its secret.
    let hidden = &key[12..];
    for secret in [PROVIDER, WRITTEN, WEBHOOK, MCP, PEER, &token, hidden] {
        for (place, text) in &reported {
            let at = text.find(secret).map(|at| &text[at.saturating_sub(200)..at]);
            assert_eq!(at, None, "a secret ({}…) is in {place}", &secret[..6]);
        }
    }
}
