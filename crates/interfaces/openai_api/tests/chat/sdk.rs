//! OpenAI's own Python client, unchanged, of the version that `openai_sdk.py` names. It is installed
//! once, into the cache of the tests.

use std::path::Path;
use std::process::{Command, Output};

use crate::world::{TOKEN, TestServer};

async fn python(server: &TestServer) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat/openai_sdk.py");
    let url = format!("http://{}/v1", server.address);
    let run = move || Command::new("python3").arg(script).arg(url).arg(TOKEN).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    output.unwrap_or_else(|error| panic!("python3 is needed: {error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_works_unchanged() {
    let server = TestServer::new().await;
    let output = python(&server).await;
    let text_of = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text_of}\n{wrong}");
    let done: Vec<&str> = text_of.lines().collect();
    let expected =
        ["chat", "stream", "tools", "streamed tools", "parse", "errors", "models", "left"];
    assert_eq!(done, expected);
    // The client that left took its model call with it.
    server.under_way(0).await;
    server.ended().await;
}
