//! The shell fulfills the contract of tools, with a sandbox and without.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use antiphon_conformance::tool::{self, Example, ToolFixture};
use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{InputBlock, RawJson, ToolExecutor};
use antiphon_sandbox::{Limits, Network, Policy, Protected, SandboxMode};
use antiphon_shell::{Environment, Shell, ShellSettings, WorkerCommand};

fn shell(folder: &Path, mode: SandboxMode) -> Shell {
    let root = folder.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let program = env!("CARGO_BIN_EXE_antiphon-shell-worker").into();
    Shell::new(ShellSettings {
        worker: WorkerCommand { program, args: Vec::new() },
        policy: Policy {
            mode,
            roots: vec![root],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: folder.join("tmp"),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: antiphon_sandbox::UnixSockets::Refused,
            repository: None,
            git_programs: antiphon_sandbox::GitPrograms::GitOnly,
            runs: antiphon_sandbox::Runs::Commands,
            limits: Limits::default(),
        },
        results: folder.join("results"),
        environment: Environment::choose(std::env::vars_os(), &[], &[]).unwrap(),
        changes_repository: |_| false,
        without_sandbox: antiphon_shell::WithoutSandbox::AskedFor,
        network: None,
    })
    .unwrap()
}

/// Starts a command in the background.
async fn started(shell: &Shell) -> String {
    let arguments = RawJson::parse(r#"{"command":"sleep 100","background":true}"#).unwrap();
    let context = ToolContext::trial(Cancel::never());
    let result = shell.execute("bash", &arguments, context).await.unwrap();
    let text = result.content.iter().find_map(|block| match block {
        InputBlock::Text(block) => Some(&block.text),
        InputBlock::Image(_) => None,
    });
    text.unwrap().split('`').nth(1).unwrap().to_owned()
}

async fn check(mode: SandboxMode) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bench = async || {
        let shell = shell(folder.path(), mode);
        let (id, victim) = tokio::join!(started(&shell), started(&shell));
        ToolFixture::new(shell)
            .example(
                Example::of("bash")
                    .good(r#"{"command":"echo hello","description":"says hello"}"#)
                    .bad(r#"{"command":"echo hello","shell":"zsh"}"#)
                    .failing(r#"{"command":"exit 3"}"#)
                    .slow(r#"{"command":"sleep 100","timeout_s":100}"#),
            )
            .example(
                Example::of("bash_output")
                    .good(&format!(r#"{{"id":"{id}"}}"#))
                    .bad("{}")
                    .failing(r#"{"id":"sh-0"}"#)
                    .slow(&format!(r#"{{"id":"{id}","wait_s":100}}"#)),
            )
            .example(
                Example::of("bash_kill")
                    .good(&format!(r#"{{"id":"{victim}"}}"#))
                    .bad(r#"{"id":7}"#)
                    .failing(r#"{"id":"sh-0"}"#),
            )
    };
    let passed = tool::check(bench).await.unwrap();
    assert_eq!(passed.skipped, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_in_a_sandbox() {
    check(SandboxMode::Workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_without_a_sandbox() {
    check(SandboxMode::Full).await;
}
