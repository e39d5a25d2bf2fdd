//! A client that knows only the document of the API and tries everything:
//! Schemathesis, of the version that `fuzz.py` names. It is installed once, into the cache of the tests.

use std::path::Path;
use std::process::{Command, Output};

use antiphon_interface_transport::{ServerConfig, ServerDeps, ServerLimits};
use antiphon_telemetry::{Metrics, Telemetry, Traces};

use crate::world::{TOKEN, TestServer, server_config};

async fn python(server: &TestServer) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/fuzz.py");
    let url = format!("http://{}", server.address);
    let run = move || Command::new("python3").arg(script).arg(url).arg(TOKEN).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    output.unwrap_or_else(|error| panic!("python3 is needed: {error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_is_in_the_document() {
    let telemetry = Telemetry { metrics: Metrics::new(), traces: Traces::new(), exporter: None };
    // It tries a wrong token on every route.
    let limits = ServerLimits { wrong_keys_per_minute: 10_000, ..ServerLimits::default() };
    let limits = ServerLimits { wrong_keys_per_minute_total: 10_000, ..limits };
    let config = |deps| {
        let config = server_config(deps);
        let deps = ServerDeps { limits, ..config.deps };
        ServerConfig { telemetry: Some(telemetry), deps, ..config }
    };
    let server = TestServer::with_config(config).await;
    let output = python(&server).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{wrong}");
    assert!(said.contains("No issues found"), "{said}");
    server.ended().await;
}
