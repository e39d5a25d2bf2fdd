//! The smallest worker: the ordinary loop, with the journal and the model of the runner and tools of
//! its own. The tests of the runner start it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../tests/runner/tools.rs"]
mod tools;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Gate, GateRequest, GateVerdict, RandomIds, Rule, RunnerError, SystemClock,
};
use antiphon_core::{ModelRef, PriceTable, Provider, RawJson, StreamEvent, TaskStatus};
use antiphon_runtime::{
    DeltaEvent, Dispatch, Models, OpenGate, Orchestrator, OrchestratorError, OrchestratorSettings,
    RuntimeDeps, WatchedDelta,
};
use antiphon_sandbox::{Network, Policy, SandboxMode};
use antiphon_sandboxed::{WorkerCommand, WorkerPorts, worker_main};
use antiphon_shell::{Environment, Shell};
use async_trait::async_trait;
use serde::Deserialize;
use tools::BenchTools;

fn main() -> ExitCode {
    // The shell has a worker of its own, within this one.
    if std::env::args().nth(1).is_some_and(|first| first == SHELL) {
        return antiphon_shell::worker_main();
    }
    worker_main(work)
}

/// The argument that makes this program the worker of a shell.
const SHELL: &str = "shell";

/// `bash`, for who is restricted already: a second sandbox could not be made.
fn shell(root: &Path) -> Shell {
    let policy = Policy {
        mode: SandboxMode::Full,
        roots: vec![root.to_owned()],
        protected: Vec::new(),
        hidden: Vec::new(),
        tmp: "/tmp/shell".into(),
        readable: Vec::new(),
        network: Network::Off,
        unix_sockets: antiphon_sandbox::UnixSockets::Refused,
        repository: None,
        git_programs: antiphon_sandbox::GitPrograms::GitOnly,
        runs: antiphon_sandbox::Runs::Commands,
        limits: antiphon_sandbox::Limits::default(),
    };
    Shell::new(antiphon_shell::ShellSettings {
        worker: WorkerCommand { program: "/proc/self/exe".into(), args: vec![SHELL.into()] },
        policy,
        results: "/tmp/results".into(),
        environment: Environment::choose(std::env::vars_os(), &[], &[]).unwrap(),
        changes_repository: |_| false,
        without_sandbox: antiphon_shell::WithoutSandbox::Impossible,
        network: None,
    })
    .unwrap()
}

#[derive(Deserialize)]
struct Bench {
    root: PathBuf,
    token: String,
    /// It does not stop when it is asked to.
    deaf: bool,
    /// The tool `act` needs an approval.
    careful: bool,
    /// It has `bash` in place of the other tools.
    shell: bool,
}

/// Asks about `act`.
struct Careful;

#[async_trait]
impl Gate for Careful {
    fn judge(&self, call: &GateRequest<'_>) -> GateVerdict {
        let rule = Rule(call.tool.to_owned());
        if call.tool != "act" || call.granted.contains(&rule) {
            return GateVerdict::Allow;
        }
        GateVerdict::Ask { reason: "It acts.".to_owned(), rule }
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Err("it remembers nothing".to_owned())
    }
}

/// Every model is the runner's.
struct TheModel(Arc<dyn Provider>);

impl Models for TheModel {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

async fn work(ports: WorkerPorts) -> Result<(), RunnerError> {
    let WorkerPorts { task_id, settings, journal, provider, cancel, interrupt, rest } = ports;
    let bench: Bench = serde_json::from_value(settings).unwrap();
    let world = RuntimeDeps {
        journal,
        models: Arc::new(TheModel(provider)),
        tools: if bench.shell {
            Arc::new(shell(&bench.root))
        } else {
            Arc::new(BenchTools { root: bench.root.clone(), token: bench.token })
        },
        gate: if bench.careful { Arc::new(Careful) } else { Arc::new(OpenGate) },
        agents: None,
        runners: Vec::new(),
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings {
            dispatch: Dispatch::Parent,
            storage_wait_max: Some(Duration::ZERO),
            ..OrchestratorSettings::default()
        },
    };
    let orchestrator = Orchestrator::new(world);
    let mut deltas = orchestrator.deltas();
    let heard = async {
        loop {
            // One that was missed is missed.
            let Some(WatchedDelta::Delta(delta)) = deltas.recv().await else { continue };
            if let DeltaEvent::Answer(StreamEvent::TextDelta { delta }) = &delta.value().event {
                hear(&bench.root, delta);
            }
        }
    };
    let state = orchestrator.task(&task_id).await.map_err(stopped)?;
    if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
        return Ok(());
    }
    orchestrator.resume(&task_id).await.map_err(stopped)?;
    let (cancel, rest) = if bench.deaf { (pending(), pending()) } else { (cancel, rest) };
    tokio::select! {
        ended = orchestrator.wait(&task_id) => match ended {
            // At rest, it has calls that only the orchestrator of the runner answers.
            Ok(_) | Err(OrchestratorError::NotRunning { .. }) => Ok(()),
            Err(error) => Err(stopped(error)),
        },
        () = cancel => {
            // What it cannot end from here is ended where the runner is.
            let _ = orchestrator.cancel(&task_id).await;
            Ok(())
        }
        () = interrupt => {
            orchestrator.interrupt(&task_id).await.map_err(stopped)?;
            Ok(())
        }
        () = rest => {
            orchestrator.shutdown(Duration::from_secs(2)).await;
            Ok(())
        }
        () = heard => unreachable!("it listens as long as there is something to hear"),
    }
}

fn pending() -> antiphon_core::Cancel {
    antiphon_core::Cancel::never()
}

fn hear(root: &Path, delta: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(root.join("heard")).unwrap();
    file.write_all(delta.as_bytes()).unwrap();
}

fn stopped(error: OrchestratorError) -> RunnerError {
    if let OrchestratorError::Journal(error) = error {
        return RunnerError::Journal(error);
    }
    RunnerError::Refused { reason: error.to_string() }
}
