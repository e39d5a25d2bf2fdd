//! Clients made with the official SDKs, unchanged: `a2a-sdk` for Python and `@a2a-js/sdk` for Node, of the versions that
//! `scripts/a2a-sdks` names, against `antiphon serve`. They are installed once, into the cache of the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::world::{Server, World};

fn sdks() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/a2a-sdks");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "scripts/a2a-sdks fails");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The steps that a client did over a binding.
fn steps(server: &Server, language: &str, binding: &str) -> Vec<String> {
    let url = format!("http://{}", server.address);
    let (sdks, scripts) = (sdks(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/a2a/sdk"));
    let mut command = match language {
        "python" => {
            let mut command = Command::new(sdks.join("python/bin/python"));
            command.arg(scripts.join("client.py"));
            command
        }
        _ => {
            let mut command = Command::new("node");
            command.arg(scripts.join("client.cjs")).arg(&sdks);
            command
        }
    };
    let command = command.args([&url, &server.token, binding]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{language}, {binding}: {wrong}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_client_of_the_python_sdk_works_over_both_bindings() {
    let world = World::new("");
    let server = world.serve();
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let expected = [
            "signed card",
            "stream",
            "once",
            "get",
            "list",
            "subscribe and cancel",
            "approval",
            "push",
            "errors",
            "extended card",
        ];
        assert_eq!(steps(&server, "python", binding), expected);
    }
}

#[test]
fn a_client_of_the_node_sdk_works_over_both_bindings() {
    let world = World::new("");
    let server = world.serve();
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let expected = [
            "stream",
            "once",
            "get",
            "subscribe and cancel",
            "approval",
            "errors",
            "extended card",
        ];
        assert_eq!(steps(&server, "node", binding), expected);
    }
}
