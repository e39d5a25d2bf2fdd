//! The runner `sandbox`, in the process with the journal and the keys.

mod process;
mod query_executor;
mod request_server;
mod sandbox_check;
mod scope;
mod stderr_tail;
mod worker_run;

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use antiphon_core::port::{Runner, RunnerError, RunnerTask};
use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use process::Process;
use sandbox_check::Checked;
use stderr_tail::StderrTail;
use worker_run::{WorkerEnd, WorkerRun};

use crate::limits::WorkerLimits;
use crate::settings::{SandboxRunnerSettings, SettingsError};
use crate::setup::Exit;

/// The kind of executor.
const KIND: &str = "sandbox";

/// How often a worker is replaced because a protected path was replaced from outside.
const REPLACEMENTS_MAX: usize = 8;

/// Executes tasks in processes of their own, under the sandbox of the operating system.
pub struct SandboxRunner {
    settings: SandboxRunnerSettings,
    slots: Semaphore,
    /// Set once a worker could be restricted on this machine.
    checked: OnceLock<()>,
}

impl SandboxRunner {
    /// Starts no process. The error says what is wrong with the settings.
    pub fn new(settings: SandboxRunnerSettings) -> Result<Self, SettingsError> {
        let settings = settings.prepared()?;
        let slots = Semaphore::new(settings.workers_max);
        Ok(Self { settings, slots, checked: OnceLock::new() })
    }

    async fn work(&self, run: &mut RunnerTask, limits: &WorkerLimits) -> Result<(), RunnerError> {
        let wall = limits.wall_s_max.map(|wall| Duration::from_secs(wall.get()));
        let until = wall.and_then(|wall| Instant::now().checked_add(wall));
        for _ in 0..REPLACEMENTS_MAX {
            let launched =
                Process::launch(&self.settings, limits, &run.task_id).map_err(|error| {
                    let program = self.settings.worker.program.display();
                    let reason = format!("the worker `{program}` cannot be started: {error}");
                    if lacks_room(&error) {
                        RunnerError::Storage { reason }
                    } else {
                        unavailable(reason)
                    }
                })?;
            let worker_run = WorkerRun::new(launched, run);
            let end = worker_run.run(run, &self.settings.worker_settings, until).await;
            if !matches!(end, WorkerEnd::Gone(Some(Exit::Stale), _)) {
                return verdict(end, limits);
            }
            tracing::info!(task.id = %run.task_id, "a protected place was replaced");
        }
        Err(unavailable("the places that it protects are replaced again and again".to_owned()))
    }
}

#[async_trait]
impl Runner for SandboxRunner {
    fn kind(&self) -> &str {
        KIND
    }

    fn check(&self, config: &Value) -> Result<(), String> {
        self.settings.limits.narrowed(config)?;
        if self.checked.get().is_none() {
            match sandbox_check::sandbox_check(&self.settings)? {
                Checked::Works => drop(self.checked.set(())),
                // The journal refuses the task, or the task waits for room when it starts.
                Checked::NoRoom => {}
            }
        }
        Ok(())
    }

    async fn run(&self, mut run: RunnerTask) -> Result<(), RunnerError> {
        let limits = self.settings.limits.narrowed(&run.config);
        let limits = limits.map_err(|reason| RunnerError::Refused { reason })?;
        let _slot = tokio::select! {
            biased;
            () = &mut run.cancel => return Ok(()),
            () = &mut run.interrupt => return Ok(()),
            () = &mut run.shutdown => return Ok(()),
            slot = self.slots.acquire() => slot,
        };
        self.work(&mut run, &limits).boxed().await
    }
}

impl std::fmt::Debug for SandboxRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxRunner")
            .field("policy", &self.settings.policy)
            .field("limits", &self.settings.limits)
            .finish_non_exhaustive()
    }
}

/// Maps the end of a worker to the result of the run: whether another attempt may help.
fn verdict(end: WorkerEnd, limits: &WorkerLimits) -> Result<(), RunnerError> {
    match end {
        WorkerEnd::Done(outcome) => outcome,
        WorkerEnd::Stopped => Ok(()),
        WorkerEnd::NoSandbox(reason) => Err(refused(reason)),
        WorkerEnd::Violated(what) => Err(refused(format!("the worker broke its rules: {what}"))),
        WorkerEnd::OutOfTime => {
            let wall_s = limits.wall_s_max.map_or(0, std::num::NonZeroU64::get);
            Err(refused(format!("the worker ran out of time ({wall_s} s)")))
        }
        WorkerEnd::NotReady => Err(unavailable("the worker did not begin in time".to_owned())),
        WorkerEnd::Fault(reason) => Err(unavailable(format!("a fault in the program: {reason}"))),
        WorkerEnd::Gone(exit, stderr_tail) => Err(end_without_report(exit, &stderr_tail, limits)),
    }
}

fn end_without_report(
    exit: Option<Exit>,
    stderr_tail: &StderrTail,
    limits: &WorkerLimits,
) -> RunnerError {
    let out_of_memory = || {
        let mb = limits.memory_bytes_max / (1024 * 1024);
        refused(format!("the worker ran out of memory (its tools may take {mb} MB together)"))
    };
    match exit {
        Some(Exit::Memory) => out_of_memory(),
        Some(Exit::Aborted) if stderr_tail.lacks_memory() => out_of_memory(),
        Some(Exit::Cpu) => {
            let cpu_s = limits.cpu_s_max;
            refused(format!("the worker ran out of CPU time (its tools may take {cpu_s} s)"))
        }
        Some(Exit::Processes) => {
            let most = limits.processes_max;
            refused(format!("the worker started too many processes ({most} at most)"))
        }
        Some(Exit::Killed) => unavailable("the worker was killed".to_owned()),
        Some(Exit::Stale) => unavailable("a place that it protects was replaced".to_owned()),
        Some(Exit::Aborted | Exit::Broken | Exit::Refused | Exit::Over) | None => {
            let text = stderr_tail.line();
            unavailable(format!("the worker ended before its task did{text}"))
        }
    }
}

/// Whether there is no room for the files of a worker.
fn lacks_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

fn refused(reason: String) -> RunnerError {
    RunnerError::Refused { reason }
}

fn unavailable(reason: String) -> RunnerError {
    RunnerError::Unavailable { reason }
}
