//! What the orchestrator adds to a lap: a scripted model that answers at once, a tool that does
//! nothing, and the journal in memory or on the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::port::{Journal, RandomIds, SystemClock, ToolContext};
use antiphon_core::{
    Effect, ModelRef, Provider, RawJson, TaskLimits, TaskStatus, Tool, ToolError, ToolExecutor,
    ToolResult, UserMessage,
};
use antiphon_runtime::{Models, NewTask, Orchestrator, World};
use antiphon_scripted::{Script, ScriptedProvider};
use antiphon_sqlite::{SqliteJournal, Sync};
use async_trait::async_trait;
use chrono::DateTime;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!("laps of one model call and one tool call; laps per second, by tasks at a time\n");
    println!("{:20}{:>12}{:>12}{:>12}", "journal", "1", "100", "1,000");
    for (name, open) in JOURNALS {
        print!("{name:20}");
        for (tasks, laps) in [(1, 400), (100, 20), (1000, 4)] {
            let folder = tempfile::tempdir()?;
            let took = run(open(folder.path())?, tasks, laps)?;
            print!("{:>12.0}", f64::from(tasks * (laps + 1)) / took.as_secs_f64());
        }
        println!();
    }
    println!("\none task in memory, milliseconds per lap:");
    for laps in [10, 100, 1000] {
        let took = run(Arc::new(MemoryJournal::new()), 1, laps)?;
        println!("{:>8} laps {:>8.3}", laps, took.as_secs_f64() * 1e3 / f64::from(laps + 1));
    }
    Ok(())
}

type Open = fn(&std::path::Path) -> Result<Arc<dyn Journal>, Error>;

const JOURNALS: [(&str, Open); 3] = [
    ("SQLite, synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), Sync::Full)?))
    }),
    ("SQLite, not synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), Sync::Normal)?))
    }),
    ("in memory", |_| Ok(Arc::new(MemoryJournal::with_events_max(usize::MAX)))),
];

/// How long `tasks` tasks of `laps` laps and a last word take, all at once.
fn run(journal: Arc<dyn Journal>, tasks: u32, laps: u32) -> Result<Duration, Error> {
    let script = format!(
        "name = \"bench\"\n[[reply]]\nwhen = {{ turn = {laps} }}\nstep = [{{ text = \"Done.\" }}]\n\
         [[reply]]\nstep = [{{ call = {{ name = \"nothing\", arguments = {{}} }} }}]\n"
    );
    let world = World {
        journal,
        models: Arc::new(Scripted(ScriptedProvider::new(Script::parse(&script)?))),
        tools: Arc::new(Nothing),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let orchestrator = Orchestrator::new(world);
        let start = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..tasks {
            let orchestrator = orchestrator.clone();
            running.spawn(async move {
                let task_id = orchestrator.invoke(new_task()?).await.ok()?;
                orchestrator.wait(&task_id).await.ok()
            });
        }
        while let Some(state) = running.join_next().await {
            let state = state?.ok_or("a task failed")?;
            if state.status != TaskStatus::Completed || state.turns != laps + 1 {
                return Err(format!("{:?} after {} turns", state.status, state.turns).into());
            }
        }
        Ok(start.elapsed())
    })
}

fn new_task() -> Option<NewTask> {
    Some(NewTask {
        agent: "bench".to_owned(),
        model: ModelRef::parse("scripted/bench").ok()?,
        system_prompt: String::new(),
        session_id: None,
        history: Vec::new(),
        message: UserMessage::text("go", DateTime::UNIX_EPOCH),
        limits: TaskLimits::default(),
        key: None,
    })
}

struct Scripted(ScriptedProvider);

impl Models for Scripted {
    fn provider(&self, _: &ModelRef) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(self.0.clone()))
    }
}

struct Nothing;

#[async_trait]
impl ToolExecutor for Nothing {
    fn tools(&self) -> Vec<Tool> {
        let parameters = RawJson::empty_object();
        vec![Tool { name: "nothing".to_owned(), description: String::new(), parameters }]
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        Some(Effect::ReadOnly)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("nothing"))
    }
}
