//! The runner `sandbox`, where the journal and the keys are.

mod attendance;
mod clerk;
mod desk;
mod last_words;
mod process;
mod scope;
mod trial;

use std::sync::OnceLock;
use std::time::Duration;

use antiphon_core::port::{Run, Runner, RunnerError};
use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use attendance::{Attendance, Left};
use last_words::LastWords;
use process::Process;

use crate::limits::Limits;
use crate::settings::{Settings, SettingsError};
use crate::setup::Exit;

/// What an executor calls it.
const KIND: &str = "sandbox";

/// How often a worker is replaced because a place that it protects was replaced from outside.
const RENEWALS_MAX: usize = 8;

/// Works on tasks in processes of their own, under the sandbox of the operating system.
pub struct SandboxRunner {
    settings: Settings,
    places: Semaphore,
    /// Set once a worker could be restricted on this machine.
    tried: OnceLock<()>,
}

impl SandboxRunner {
    /// Nothing is started yet. An error says what is wrong with the settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let settings = settings.prepared()?;
        let places = Semaphore::new(settings.workers_max);
        Ok(Self { settings, places, tried: OnceLock::new() })
    }

    async fn work(&self, run: &mut Run, limits: &Limits) -> Result<(), RunnerError> {
        let wall = limits.wall_s_max.map(|wall| Duration::from_secs(wall.get()));
        let until = wall.and_then(|wall| Instant::now().checked_add(wall));
        for _ in 0..RENEWALS_MAX {
            let launched = Process::launch(&self.settings, limits).map_err(|error| {
                let program = self.settings.worker.program.display();
                unavailable(format!("the worker `{program}` cannot be started: {error}"))
            })?;
            let attendance = Attendance::new(launched, run);
            let left = attendance.attend(run, &self.settings.worker_settings, until).await;
            if !matches!(left, Left::Gone(Some(Exit::Stale), _)) {
                return verdict(left, limits);
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
        if self.tried.get().is_none() {
            trial::trial(&self.settings)?;
            let _ = self.tried.set(());
        }
        Ok(())
    }

    async fn run(&self, mut run: Run) -> Result<(), RunnerError> {
        let limits = self.settings.limits.narrowed(&run.config);
        let limits = limits.map_err(|reason| RunnerError::Refused { reason })?;
        let _place = tokio::select! {
            biased;
            () = &mut run.cancel => return Ok(()),
            () = &mut run.shutdown => return Ok(()),
            place = self.places.acquire() => place,
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

/// What to tell the orchestrator: whether asking again may help.
fn verdict(left: Left, limits: &Limits) -> Result<(), RunnerError> {
    match left {
        Left::Done(outcome) => outcome,
        Left::Asked => Ok(()),
        Left::NoSandbox(reason) => Err(refused(reason)),
        Left::Violated(what) => Err(refused(format!("the worker broke its rules: {what}"))),
        Left::OutOfTime => {
            let wall_s = limits.wall_s_max.map_or(0, std::num::NonZeroU64::get);
            Err(refused(format!("the worker ran out of time ({wall_s} s)")))
        }
        Left::NotReady => Err(unavailable("the worker did not begin in time".to_owned())),
        Left::Fault(reason) => Err(unavailable(format!("a fault in the program: {reason}"))),
        Left::Gone(exit, last_words) => Err(death(exit, &last_words, limits)),
    }
}

fn death(exit: Option<Exit>, last_words: &LastWords, limits: &Limits) -> RunnerError {
    let out_of_memory = || {
        let mb = limits.memory_bytes_max / (1024 * 1024);
        refused(format!("the worker ran out of memory (its tools may take {mb} MB together)"))
    };
    match exit {
        Some(Exit::Memory) => out_of_memory(),
        Some(Exit::Aborted) if last_words.lacks_memory() => out_of_memory(),
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
            let said = last_words.line();
            unavailable(format!("the worker ended before its task did{said}"))
        }
    }
}

fn refused(reason: String) -> RunnerError {
    RunnerError::Refused { reason }
}

fn unavailable(reason: String) -> RunnerError {
    RunnerError::Unavailable { reason }
}
