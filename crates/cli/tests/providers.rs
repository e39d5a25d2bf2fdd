//! The binary and a provider over HTTP: keys, proxies, and what the user reads when it fails.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::process::{Command, Output, Stdio};

use antiphon_model_server::{ModelServer, RecordedRequest, Reply};

use project_folder::{ProjectFolder, home};

const KEY: &str = "sk-ant-a-very-secret-key-0123456789";

const ANSWER: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello.\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// Runs `antiphon run --json` with those variables, away from the threads that serve it.
async fn run(variables: Vec<(&'static str, String)>) -> (Output, String) {
    let run = move || {
        let folder = ProjectFolder::new();
        Command::new(env!("CARGO_BIN_EXE_antiphon"))
            .args(["run", "--json", "--model", "anthropic/claude", "hi"])
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", home(folder.path()))
            .env("ANTHROPIC_API_KEY", KEY)
            .envs(variables)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let text = text.into_owned();
    (output, text)
}

async fn server(answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> ModelServer {
    ModelServer::start(move |_: &RecordedRequest, number| answer(number)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_goes_to_the_provider_and_nowhere_else() {
    let server = server(|_| Reply::events(ANSWER)).await;
    let (output, text) = run(vec![("ANTHROPIC_BASE_URL", server.url())]).await;
    assert!(output.status.success(), "{text}");
    assert!(text.contains("\"status\":\"completed\",\"detail\":\"Hello.\""), "{text}");
    assert_eq!(server.requests()[0].header("x-api-key"), Some(KEY));
    assert!(!text.contains(KEY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_of_the_environment_is_used() {
    let proxy = server(|_| Reply::events(ANSWER)).await;
    let variables = vec![
        ("ANTHROPIC_BASE_URL", "http://model.invalid".to_owned()),
        ("HTTP_PROXY", proxy.url()),
    ];
    let (output, text) = run(variables).await;
    assert!(output.status.success(), "{text}");
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/messages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_busy_is_asked_again() {
    let busy = || {
        let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
        Reply::json(529, body).header("retry-after-ms", "5")
    };
    let server =
        server(move |number| if number < 2 { busy() } else { Reply::events(ANSWER) }).await;
    let (output, text) = run(vec![("ANTHROPIC_BASE_URL", server.url())]).await;
    assert!(output.status.success(), "{text}");
    assert_eq!(server.served(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_told_what_to_do() {
    let error = |status, kind: &str| {
        let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        Reply::json(status, body)
    };
    let cases = [
        (error(401, "authentication_error"), 1, "did not accept the key"),
        (error(404, "not_found_error"), 1, "no such model or address"),
        (error(400, "invalid_request_error"), 1, "refused the request"),
        (Reply::json(302, ""), 1, "check base_url"),
        (Reply::json(404, "<!doctype html><p>hi"), 1, "a web page"),
        (error(500, "api_error").header("x-should-retry", "false"), 1, "no"),
    ];
    for (reply, code, words) in cases {
        let server = server(move |_| reply.clone()).await;
        let (output, text) = run(vec![("ANTHROPIC_BASE_URL", server.url())]).await;
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(words), "{words}: {text}");
        assert_eq!(server.served(), 1, "{words}: it is not asked again");
    }
}
