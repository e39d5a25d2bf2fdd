//! The overhead of the orchestrator per step: a scripted model that answers at once, a tool that
//! does nothing, and a journal in memory or on disk. And the memory of a waiting task.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Gate, GateRequest, GateVerdict, Journal, RandomIds, Read, Rule, SystemClock, ToolContext,
};
use antiphon_core::{
    Effect, Event, ModelRef, Position, Provider, RawJson, TaskStatus, Tool, ToolError,
    ToolExecutor, ToolResult, UserMessage,
};
use antiphon_runtime::{
    Follower, Models, NewTask, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
};
use antiphon_sandbox::{Limits, Network, Policy, Protected, SandboxMode};
use antiphon_scripted::{Script, ScriptedProvider};
use antiphon_shell::{Environment, Shell, WorkerCommand, worker_main};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Error> {
    if std::env::args().any(|argument| argument == WORKER) {
        return Ok(worker_main());
    }
    measure()?;
    Ok(ExitCode::SUCCESS)
}

/// Argument that makes this program a worker.
const WORKER: &str = "__worker";

fn measure() -> Result<(), Error> {
    // First, while nothing else has used memory.
    println!("memory, KiB each:");
    for (name, tasks, script) in
        [("waiting for the model", 2_000, STALLS), ("waiting for an approval", 10_000, ASKS)]
    {
        println!("{name:24}{:>8.2}", memory(tasks, script)?);
    }
    println!(
        "\nthe loop alone, in this process: steps of a scripted model and a tool that does nothing; per second, by tasks at a time\n"
    );
    println!("{:20}{:>12}{:>12}{:>12}", "journal", "1", "100", "1,000");
    for (name, open) in JOURNALS {
        print!("{name:20}");
        for (tasks, steps) in [(1, 400), (100, 20), (1000, 4)] {
            let folder = tempfile::tempdir()?;
            let took = run(open(folder.path())?, tasks, steps)?;
            print!("{:>12.0}", f64::from(tasks * (steps + 1)) / took.as_secs_f64());
        }
        println!();
    }
    println!("\none task of 5,000 steps, milliseconds per step, by where in it:");
    println!("{:20}{:>12}{:>12}{:>12}", "journal", "10", "1,000", "4,900");
    for (name, open) in JOURNALS {
        let folder = tempfile::tempdir()?;
        let journal = open(folder.path())?;
        run(Arc::clone(&journal), 1, 5_000)?;
        let ends = step_ends(&*journal)?;
        print!("{name:20}");
        for step in [10, 1_000, 4_900] {
            let took = ends[step + 100].signed_duration_since(ends[step]).as_seconds_f64();
            print!("{:>12.3}", took * 1e3 / 100.0);
        }
        println!();
    }
    let folder = tempfile::tempdir()?;
    let journal = SqliteJournal::open(&folder.path().join("journal.db"), SyncPolicy::Full)?;
    let script = script(200, "{ name = \"bash\", arguments = { command = \"true\" } }");
    let world = RuntimeDeps { tools: shell(folder.path())?, ..world(Arc::new(journal), &script)? };
    let took = run_in(world, 1, 200)?.as_secs_f64() * 1e3 / 201.0;
    println!("\na step with `bash -c true` in the sandbox, synced: {took:.2} ms");
    Ok(())
}

fn shell(folder: &Path) -> Result<Arc<dyn ToolExecutor>, Error> {
    let root = folder.join("root");
    std::fs::create_dir_all(&root)?;
    let settings = antiphon_shell::ShellSettings {
        worker: WorkerCommand { program: std::env::current_exe()?, args: vec![WORKER.into()] },
        policy: Policy {
            mode: SandboxMode::Workspace,
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
        environment: Environment::choose(std::env::vars_os(), &[], &[])?,
        changes_repository: |_| false,
        without_sandbox: antiphon_shell::WithoutSandbox::AskedFor,
        network: None,
    };
    Ok(Arc::new(Shell::new(settings)?))
}

const STALLS: &str = "name = \"bench\"\n[[reply]]\nstep = [{ stall = true }]\n";
const ASKS: &str = "name = \"bench\"\n[[reply]]\nstep = [{ call = { name = \"nothing\", arguments \
                    = {} } }]\n";

/// When each step ended.
fn step_ends(journal: &dyn Journal) -> Result<Vec<DateTime<Utc>>, Error> {
    let runtime = Builder::new_current_thread().build()?;
    let (mut ends, mut after) = (Vec::new(), Position(0));
    loop {
        let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
        let page = runtime.block_on(journal.read(read))?;
        if page.events.is_empty() {
            return Ok(ends);
        }
        after = page.next;
        let ended = |event: &Event| event.body.event_type() == "usage_recorded";
        ends.extend(page.events.into_iter().filter(ended).map(|event| event.at));
    }
}

/// Additional memory of this process for each of `tasks` waiting tasks.
fn memory(tasks: u32, script: &str) -> Result<f64, Error> {
    let folder = tempfile::tempdir()?;
    let journal = SqliteJournal::open(&folder.path().join("journal.db"), SyncPolicy::Normal)?;
    let world = RuntimeDeps { gate: Arc::new(Asks), ..world(Arc::new(journal), script)? };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let orchestrator = Orchestrator::new(world);
        let mut follower = orchestrator.follow(None, Position(0));
        // A first task allocates what every task needs.
        orchestrator.invoke(new_task().ok_or("no task")?).await?;
        settle(&mut follower, 1, script).await?;
        let before = resident_kib()?;
        for _ in 0..tasks {
            orchestrator.invoke(new_task().ok_or("no task")?).await?;
        }
        settle(&mut follower, tasks, script).await?;
        let after = resident_kib()?;
        orchestrator.shutdown(Duration::from_secs(5)).await;
        Ok((after - before) / f64::from(tasks))
    })
}

/// Waits until this many more tasks wait.
async fn settle(follower: &mut Follower, tasks: u32, script: &str) -> Result<(), Error> {
    let waits = if script == STALLS { "state_changed" } else { "approval_requested" };
    let mut waiting = 0;
    while waiting < tasks {
        waiting += u32::from(follower.next().await?.body.event_type() == waits);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn resident_kib() -> Result<f64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let number: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(number as f64)
}

type Open = fn(&Path) -> Result<Arc<dyn Journal>, Error>;

const JOURNALS: [(&str, Open); 3] = [
    ("SQLite, synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Full)?))
    }),
    ("SQLite, not synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Normal)?))
    }),
    ("in memory", |_| Ok(Arc::new(MemoryJournal::with_events_max(usize::MAX)))),
];

/// A model that makes this call `steps` times, then answers.
fn script(steps: u32, call: &str) -> String {
    format!(
        "name = \"bench\"\n[[reply]]\nwhen = {{ turn = {steps} }}\nstep = [{{ text = \"Done.\" }}]\n\
         [[reply]]\nstep = [{{ call = {call} }}]\n"
    )
}

/// Duration of `tasks` concurrent tasks of `steps` steps and a final answer.
fn run(journal: Arc<dyn Journal>, tasks: u32, steps: u32) -> Result<Duration, Error> {
    let script = script(steps, "{ name = \"nothing\", arguments = {} }");
    run_in(world(journal, &script)?, tasks, steps)
}

fn run_in(world: RuntimeDeps, tasks: u32, steps: u32) -> Result<Duration, Error> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let orchestrator = Orchestrator::new(world);
        let start = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..tasks {
            let orchestrator = orchestrator.clone();
            running.spawn(async move {
                let task_id = orchestrator.invoke(new_task()?).await.ok()?.task_id;
                orchestrator.wait(&task_id).await.ok()
            });
        }
        while let Some(state) = running.join_next().await {
            let state = state?.ok_or("a task failed")?;
            if state.status != TaskStatus::Completed || state.turns != steps + 1 {
                return Err(format!("{:?} after {} turns", state.status, state.turns).into());
            }
        }
        Ok(start.elapsed())
    })
}

fn world(journal: Arc<dyn Journal>, script: &str) -> Result<RuntimeDeps, Error> {
    Ok(RuntimeDeps {
        journal,
        models: Arc::new(Scripted(ScriptedProvider::new(Script::parse(script)?))),
        tools: Arc::new(Nothing),
        gate: Arc::new(OpenGate),
        agents: None,
        runners: Vec::new(),
        prices: Arc::default(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    })
}

/// A gate that asks for everything.
struct Asks;

#[async_trait]
impl Gate for Asks {
    fn judge(&self, _: &GateRequest<'_>) -> GateVerdict {
        GateVerdict::Ask { reason: "It may.".to_owned(), rule: Rule("nothing".to_owned()) }
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}

fn new_task() -> Option<NewTask> {
    let message = UserMessage::text("go", DateTime::UNIX_EPOCH);
    Some(NewTask::new("bench", ModelRef::parse("scripted/bench").ok()?, message))
}

struct Scripted(ScriptedProvider);

impl Models for Scripted {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(self.0.clone()))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct Nothing;

#[async_trait]
impl ToolExecutor for Nothing {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let parameters = RawJson::empty_object();
        vec![Arc::new(Tool { name: "nothing".to_owned(), description: String::new(), parameters })]
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        Some(Effect::ReadOnly)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("nothing"))
    }
}
