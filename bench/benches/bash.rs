//! What the `bash` tool adds to starting `bash`: the same command through the tool, with a sandbox
//! and without, beside a bare spawn.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{RawJson, ToolExecutor};
use antiphon_sandbox::{Limits, Mode, Network, Policy, Protected};
use antiphon_shell::{Environment, Settings, Shell, WorkerCommand, worker_main};
use tokio::runtime::Builder;

type Error = Box<dyn std::error::Error>;

/// Rounds of each; they take turns, so that whatever else the machine does harms all alike.
const ROUNDS: usize = 600;

/// Says that this program was started to be a worker.
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
    let shells = [Mode::Workspace, Mode::Full].map(|mode| shell(folder.path(), mode, &environment));
    let [sandboxed, full] = shells;
    let (sandboxed, full) = (sandboxed?, full?);
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
                timed(|| bare(command))?,
                timed(|| runtime.block_on(tool(&sandboxed, &arguments)))?,
                timed(|| runtime.block_on(tool(&full, &arguments)))?,
            ];
            // The first ones warm up.
            if round >= 10 {
                took.iter_mut().zip(measured).for_each(|(took, measured)| took.push(measured));
            }
        }
        let [bare, sandboxed, full] = took.map(median);
        let times = |took: Duration| took.as_secs_f64() / bare.as_secs_f64();
        println!("{title}");
        println!("  bare spawn and wait   {bare:>10.1?}");
        println!("  tool, in a sandbox    {sandboxed:>10.1?}   {:.2}x", times(sandboxed));
        println!("  tool, without one     {full:>10.1?}   {:.2}x", times(full));
    }
    let begun = Instant::now();
    let fresh = shell(folder.path(), Mode::Workspace, &environment)?;
    runtime.block_on(tool(&fresh, &RawJson::parse(r#"{"command":"true"}"#)?))?;
    println!("first call of a task, with the start of its worker: {:.1?}", begun.elapsed());
    Ok(())
}

fn shell(folder: &Path, mode: Mode, environment: &Environment) -> Result<Shell, Error> {
    let root = folder.join("root");
    std::fs::create_dir_all(&root)?;
    let settings = Settings {
        worker: WorkerCommand { program: std::env::current_exe()?, args: vec![WORKER.into()] },
        policy: Policy {
            mode,
            roots: vec![root],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: folder.join("tmp"),
            readable: Vec::new(),
            network: Network::Off,
            limits: Limits::default(),
        },
        results: folder.join("results"),
        environment: environment.clone(),
    };
    Ok(Shell::new(settings)?)
}

fn bare(command: &str) -> Result<(), Error> {
    let output = Command::new("/bin/bash").args(["-c", command]).stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err("bash failed".into()) }
}

async fn tool(shell: &Shell, arguments: &RawJson) -> Result<(), Error> {
    let result = shell.execute("bash", arguments, ToolContext::trial(Cancel::never())).await?;
    if result.is_error { Err(format!("{:?}", result.content).into()) } else { Ok(()) }
}

fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took.get(took.len() / 2).copied().unwrap_or_default()
}
