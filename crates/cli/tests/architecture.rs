//! Dependencies point inward. This is the test that says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Names of the packages each package of the workspace needs, tests aside.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &Value| {
        let needed = package["dependencies"].as_array().unwrap().iter();
        let needed = needed.filter(|dependency| dependency["kind"].is_null());
        needed.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), names(package)))
        .collect()
}

#[test]
fn the_core_has_no_runtime_no_sockets_and_no_files() {
    let allowed: BTreeSet<String> = [
        "async-trait",
        "base64",
        "chrono",
        "futures-core",
        "schemars",
        "secrecy",
        "serde",
        "serde_json",
        "thiserror",
        "uuid",
    ]
    .map(str::to_owned)
    .into();
    let found = &dependencies()["antiphon-core"];
    assert_eq!(found.difference(&allowed).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Crates that wrap the file system or are pure, need none of ours, and may be used by every adapter.
const LEAVES: [&str; 4] =
    ["antiphon-folder-watch", "antiphon-hosts", "antiphon-outbound", "antiphon-private-file"];

/// Crates of this workspace that each may depend on.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("antiphon-anthropic", &["antiphon-core", "antiphon-model-transport"]),
    ("antiphon-gemini", &["antiphon-core", "antiphon-model-transport"]),
    ("antiphon-openai", &["antiphon-core", "antiphon-model-transport"]),
    ("antiphon-model-server", &["antiphon-conformance", "antiphon-core"]),
    (
        "antiphon-interface-transport",
        &[
            "antiphon-core",
            "antiphon-keys",
            "antiphon-project",
            "antiphon-runtime",
            "antiphon-telemetry",
        ],
    ),
    (
        "antiphon-http",
        &[
            "antiphon-api",
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-keys",
            "antiphon-project",
            "antiphon-runtime",
            "antiphon-session-file",
            "antiphon-telemetry",
        ],
    ),
    (
        "antiphon-openai-api",
        &[
            "antiphon-api",
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-project",
            "antiphon-runtime",
        ],
    ),
    (
        "antiphon-a2a-api",
        &[
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-keys",
            "antiphon-project",
            "antiphon-runtime",
        ],
    ),
    (
        "antiphon-acp",
        &[
            "antiphon-api",
            "antiphon-client",
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-permissions",
            "antiphon-process",
            "antiphon-project",
            "antiphon-view",
        ],
    ),
    (
        "antiphon-mcp-server",
        &[
            "antiphon-api",
            "antiphon-client",
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-permissions",
            "antiphon-process",
            "antiphon-project",
            "antiphon-runtime",
            "antiphon-view",
        ],
    ),
    ("antiphon-anthropic-api", &["antiphon-core", "antiphon-interface-transport"]),
    ("antiphon-schedule", &["antiphon-core", "antiphon-project", "antiphon-runtime"]),
    ("antiphon-client", &["antiphon-api", "antiphon-core"]),
    (
        "antiphon-remote",
        &["antiphon-api", "antiphon-client", "antiphon-core", "antiphon-followed-task"],
    ),
    ("antiphon-a2a", &["antiphon-client", "antiphon-core", "antiphon-followed-task"]),
    (
        "antiphon-process",
        &[
            "antiphon-api",
            "antiphon-client",
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-project",
            "antiphon-runtime",
            "antiphon-session-file",
            "antiphon-sqlite",
            "antiphon-view",
        ],
    ),
    (
        "antiphon-test-server",
        &[
            "antiphon-core",
            "antiphon-interface-transport",
            "antiphon-keys",
            "antiphon-runtime",
            "antiphon-scripted",
        ],
    ),
    ("antiphon-file-tools", &["antiphon-core", "antiphon-toolbox"]),
    ("antiphon-imports", &["antiphon-agent-files", "antiphon-core"]),
    (
        "antiphon-shell",
        &["antiphon-core", "antiphon-egress-proxy", "antiphon-sandbox", "antiphon-toolbox"],
    ),
    ("antiphon-skills", &["antiphon-core", "antiphon-toolbox"]),
    ("antiphon-sandboxed", &["antiphon-core", "antiphon-sandbox"]),
    ("antiphon-web", &["antiphon-core", "antiphon-toolbox"]),
    ("antiphon-demo", &["antiphon-core", "antiphon-view"]),
    (
        "antiphon-tui",
        &[
            "antiphon-api",
            "antiphon-core",
            "antiphon-process",
            "antiphon-project",
            "antiphon-runtime",
            "antiphon-session-file",
            "antiphon-view",
        ],
    ),
    ("antiphon-view", &["antiphon-core", "antiphon-runtime"]),
    ("antiphon-core", &[]),
];

#[test]
fn adapters_know_the_core_and_not_each_other() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for (name, needed) in dependencies() {
        // The project library wires the adapters; the binary and the benchmarks may know all crates.
        if ["antiphon", "antiphon-bench", "antiphon-project"].contains(&name.as_str()) {
            continue;
        }
        let allowed = allowed.get(name.as_str()).copied().unwrap_or(&["antiphon-core"]);
        for ours in needed.iter().filter(|needed| needed.starts_with("antiphon")) {
            if LEAVES.contains(&ours.as_str()) {
                continue;
            }
            assert!(allowed.contains(&ours.as_str()), "{name} must not need {ours}");
        }
    }
}

#[test]
fn only_the_transport_of_interfaces_needs_the_openapi_generator() {
    let all = dependencies();
    let needing: Vec<&String> =
        all.iter().filter(|(_, needed)| needed.contains("aide")).map(|(name, _)| name).collect();
    assert_eq!(needing, ["antiphon-interface-transport"]);
}

#[test]
fn the_project_library_depends_on_no_terminal_and_no_argument_parser() {
    let needed = &dependencies()["antiphon-project"];
    for banned in ["antiphon-view", "antiphon-client", "antiphon-tui", "clap", "crossterm"] {
        assert!(!needed.contains(banned), "antiphon-project must not need {banned}");
    }
}

/// The interfaces, by package name.
const INTERFACES: [&str; 8] = [
    "antiphon-a2a-api",
    "antiphon-acp",
    "antiphon-anthropic-api",
    "antiphon-file-drop",
    "antiphon-http",
    "antiphon-mcp-server",
    "antiphon-openai-api",
    "antiphon-schedule",
];

/// Every package that a package needs, directly or through others.
fn reached(all: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        for needed in all.get(&next).into_iter().flatten() {
            if found.insert(needed.clone()) {
                open.push(needed.clone());
            }
        }
    }
    found
}

#[test]
fn interfaces_do_not_depend_on_each_other_not_even_through_another_crate() {
    let all = dependencies();
    for name in INTERFACES {
        let reached = reached(&all, name);
        for other in INTERFACES {
            assert!(!reached.contains(other), "{name} must not reach {other}");
        }
    }
}

#[test]
fn no_library_that_interfaces_stand_on_reaches_an_interface() {
    let all = dependencies();
    for name in ["antiphon-project", "antiphon-process", "antiphon-client", "antiphon-view"] {
        let reached = reached(&all, name);
        for interface in INTERFACES {
            assert!(!reached.contains(interface), "{name} must not reach {interface}");
        }
    }
}

/// Files of the binary outside of `commands/`, with their texts.
fn files_of_the_binary() -> Vec<(String, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut open = vec![source.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&source).unwrap().display().to_string();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Crates of adapters that a command may not use by itself: a rule about them belongs into a library.
const ADAPTERS: [&str; 14] = [
    "antiphon_a2a_api",
    "antiphon_acp",
    "antiphon_anthropic_api",
    "antiphon_file_drop",
    "antiphon_http",
    "antiphon_mcp",
    "antiphon_openai_api",
    "antiphon_sandbox",
    "antiphon_schedule",
    "antiphon_scripted",
    "antiphon_session_file",
    "antiphon_shell",
    "antiphon_sqlite",
    "antiphon_terminal",
];

/// The files of the binary that wire adapters, or whose command is about one.
const WIRING: [&str; 21] = [
    "commands/definitions/attach.rs",
    "commands/interfaces/acp.rs",
    "commands/interfaces/card_key.rs",
    "commands/interfaces/mcp/serve.rs",
    "commands/interfaces/serve.rs",
    "commands/interfaces/serve/a2a.rs",
    "commands/interfaces/serve/background_services.rs",
    "commands/interfaces/serve/hand_over.rs",
    "commands/setup/demo.rs",
    "commands/setup/doctor.rs",
    "commands/storage/backup.rs",
    "commands/storage/journal/compact.rs",
    "commands/storage/journal/progress.rs",
    "commands/storage/journal/prune.rs",
    "commands/storage/journal/repair.rs",
    "commands/storage/journal/verify.rs",
    "commands/storage/restore.rs",
    "failure.rs",
    "main.rs",
    "wiring/interface.rs",
    "wiring/request_drop.rs",
];

#[test]
fn only_wiring_files_of_the_binary_use_an_adapter() {
    let using: Vec<String> = files_of_the_binary()
        .into_iter()
        .filter(|(_, text)| ADAPTERS.iter().any(|adapter| text.contains(adapter)))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(using, WIRING, "wire adapters in one of these files, and put rules into a library");
}

/// Lines that a file of the binary may have outside of `commands/`.
const LINES_MAX: usize = 180;

/// Lines that the file of a command may have beside its arguments and their help.
const COMMAND_LINES_MAX: usize = 240;

/// The lines of a file without the types that `clap` parses.
fn lines_beside_arguments(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let is_parsed =
            ["Args", "Parser", "Subcommand", "ValueEnum"].iter().any(|it| line.contains(it));
        if line.starts_with("#[derive(") && is_parsed {
            lines.by_ref().take_while(|line| *line != "}").for_each(drop);
        } else {
            count += 1;
        }
    }
    count
}

#[test]
fn a_file_of_the_binary_is_short() {
    for (name, text) in files_of_the_binary() {
        // Watching a task is drawing and reading keys; it goes with the terminal program.
        if name.starts_with("watch") {
            continue;
        }
        let (lines, most) = if name.starts_with("commands") {
            (lines_beside_arguments(&text), COMMAND_LINES_MAX)
        } else {
            (text.lines().count(), LINES_MAX)
        };
        assert!(lines <= most, "{name} has {lines} lines: move rules into a library");
    }
}

#[test]
fn the_runtime_depends_on_the_core_alone() {
    let needed = &dependencies()["antiphon-runtime"];
    let ours: Vec<&String> = needed.iter().filter(|name| name.starts_with("antiphon")).collect();
    assert_eq!(ours, ["antiphon-core"]);
}

#[test]
fn no_crate_depends_on_the_binary() {
    for (name, needed) in dependencies() {
        assert!(!needed.contains("antiphon"), "{name} must not need the binary");
    }
}
