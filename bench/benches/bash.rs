//! The overhead of the `bash` tool: the same command through the tool, with and without a sandbox,
//! compared with a bare spawn.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_bench::heading;
use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{RawJson, ToolExecutor};
use antiphon_sandbox::{Limits, Network, Policy, Protected, SandboxMode};
use antiphon_shell::{Environment, Shell, ShellSettings, WorkerCommand, worker_main};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error>;

/// Rounds of each. They alternate, so that other load affects all alike.
const ROUNDS: usize = 600;

/// Argument that makes this program a worker.
const WORKER: &str = "__worker";

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == WORKER) {
        return worker_main();
    }
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let environment = Environment::choose(std::env::vars_os(), &[], &[])?;
    let shells = [SandboxMode::Workspace, SandboxMode::Full]
        .map(|mode| shell(folder.path(), mode, &environment));
    let [sandboxed, full] = shells;
    let (sandboxed, full) = (Arc::new(sandboxed?), Arc::new(full?));
    heading(&format!("the `bash` tool beside a bare spawn; {ROUNDS} rounds"), "bash");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (title, command) in [
        ("bash -c true", "true"),
        ("bash -c 'echo hello'", "echo hello"),
        ("bash -c 'seq 1 100000'", "seq 1 100000"),
    ] {
        let arguments = RawJson::of(&serde_json::json!({ "command": command }))?;
        let rounds = if command.starts_with("seq") { ROUNDS / 6 } else { ROUNDS };
        let mut took = [const { Vec::new() }; 3];
        for round in 0..rounds + 10 {
            let measured = [
                bare(command)?,
                runtime.block_on(tool(&sandboxed, &arguments))?,
                runtime.block_on(tool(&full, &arguments))?,
            ];
            // The first rounds are a warm-up.
            if round >= 10 {
                took.iter_mut().zip(measured).for_each(|(took, measured)| took.push(measured));
            }
        }
        println!("{title:28}{:>10}{:>10}{:>10}", "median", "", "best 10%");
        let [bare, sandboxed, full] = took.map(median_and_best);
        print_row("bare spawn and wait", bare, bare);
        print_row("tool, in a sandbox", sandboxed, bare);
        print_row("tool, without one", full, bare);
    }
    let fresh = Arc::new(shell(folder.path(), SandboxMode::Workspace, &environment)?);
    let first = runtime.block_on(tool(&fresh, &RawJson::parse(r#"{"command":"true"}"#)?))?;
    println!("first call of a task, with the start of its worker: {first:.1?}");
    Ok(())
}

fn shell(folder: &Path, mode: SandboxMode, environment: &Environment) -> Result<Shell, Error> {
    let root = folder.join("root");
    std::fs::create_dir_all(&root)?;
    let settings = ShellSettings {
        worker: WorkerCommand { program: std::env::current_exe()?, args: vec![WORKER.into()] },
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
        environment: environment.clone(),
        changes_repository: |_| false,
        without_sandbox: antiphon_shell::WithoutSandbox::AskedFor,
        network: None,
    };
    Ok(Shell::new(settings)?)
}

fn bare(command: &str) -> Result<Duration, Error> {
    let begun = Instant::now();
    let output = Command::new("/bin/bash").args(["-c", command]).stdin(Stdio::null()).output()?;
    let took = begun.elapsed();
    if output.status.success() { Ok(took) } else { Err("bash failed".into()) }
}

/// Called where tools are called: on a thread of the runtime.
async fn tool(shell: &Arc<Shell>, arguments: &RawJson) -> Result<Duration, Error> {
    let (shell, arguments) = (Arc::clone(shell), arguments.clone());
    let mut caller = JoinSet::new();
    caller.spawn(async move {
        let begun = Instant::now();
        let context = ToolContext::trial(Cancel::never());
        let result = shell.execute("bash", &arguments, context).await;
        (begun.elapsed(), result)
    });
    let (took, result) = caller.join_next().await.ok_or("no call was made")??;
    let result = result?;
    if result.is_error { Err(format!("{:?}", result.content).into()) } else { Ok(took) }
}

/// The best is the time on an otherwise idle machine.
fn median_and_best(mut took: Vec<Duration>) -> [Duration; 2] {
    took.sort();
    [2, 10].map(|part| took.get(took.len() / part).copied().unwrap_or_default())
}

fn print_row(name: &str, took: [Duration; 2], bare: [Duration; 2]) {
    let [median, best] = took;
    let times = |place: usize| took[place].as_secs_f64() / bare[place].as_secs_f64();
    println!("  {name:26}{median:>10.1?}{:>9.2}x{best:>10.1?}{:>9.2}x", times(0), times(1));
}
