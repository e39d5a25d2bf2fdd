//! One agent that calls many, run by the orchestrator.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Agents, Journal, Piece, PieceSource, PromptSource, RandomIds, StopSignal, SystemClock,
    TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentDefinition, AgentName, ModelRef, Provider, RawJson, Request, StopReason, TaskId,
    TaskLimits, TaskStatus, Usage, UserMessage,
};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{ChatCompletions, ChatConfig, ChatQuirks};
use antiphon_runtime::{
    Models, NewTask, NoTools, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::DateTime;
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::runtime::Builder;

use crate::Error;
use crate::model::{ANSWER_AFTER, TEXT};
use crate::usage::{Meter, ResourceUsage};

/// The system prompt of each child.
pub(crate) const CONTEXT: &str = "You review one part of a program. Be short.";

/// The prompt of a child.
pub(crate) fn prompt(number: u32) -> String {
    format!("Look at part {number}.")
}

/// The model of the children.
pub(crate) enum Model<'a> {
    /// A server at this address.
    At(&'a str),
    /// A timer in memory.
    InMemory,
}

/// Opens the journal.
pub(crate) type Open = fn(&Path) -> Result<Arc<dyn Journal>, Error>;

pub(crate) fn synced(path: &Path) -> Result<Arc<dyn Journal>, Error> {
    Ok(Arc::new(SqliteJournal::open(path, SyncPolicy::Full)?))
}

#[expect(clippy::unnecessary_wraps, reason = "an `Open`")]
pub(crate) fn in_memory(_: &Path) -> Result<Arc<dyn Journal>, Error> {
    Ok(Arc::new(MemoryJournal::with_events_max(usize::MAX)))
}

/// Runs one task that dispatches this many children, and measures until it has ended.
pub(crate) fn run(children: u32, model: &Model<'_>, open: Open) -> Result<ResourceUsage, Error> {
    // Next to the build output: a temporary folder may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let path = folder.path().join("journal.db");
    drop(open(&path)?);
    let empty = bytes_of(&path);
    let spent = Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let journal = open(&path)?;
        let orchestrator = Orchestrator::new(world(Arc::clone(&journal), model)?);
        // A first run allocates what every run needs.
        dispatch(&orchestrator, 1).await?;
        let meter = Meter::start()?;
        let root = dispatch(&orchestrator, children).await?;
        let spent = meter.stop()?;
        check(&*journal, root, children).await?;
        Ok::<_, Error>(spent)
    })?;
    // Closed by now, including its write-ahead log.
    Ok(ResourceUsage { journal_bytes: bytes_of(&path) - empty, ..spent })
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn bytes_of(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |about| about.len() as f64)
}

async fn dispatch(orchestrator: &Orchestrator, children: u32) -> Result<TaskId, Error> {
    let most = NonZeroU32::new(children + 1);
    let message = UserMessage::text("Have every part reviewed.", DateTime::UNIX_EPOCH);
    let task = NewTask {
        limits: TaskLimits { fan_out_max: most, tasks_max: most, ..TaskLimits::default() },
        ..NewTask::new("root", ModelRef::parse(&format!("{CALLER}/{children}"))?, message)
    };
    let task_id = orchestrator.invoke(task).await?.task_id;
    let status = orchestrator.wait(&task_id).await?.status;
    if status != TaskStatus::Completed {
        return Err(format!("the one who calls is {}", status.as_str()).into());
    }
    Ok(task_id)
}

/// Checks that every child ran and answered.
async fn check(journal: &dyn Journal, root: TaskId, children: u32) -> Result<(), Error> {
    let tree = TaskQuery { which: TaskSelector::Tree(root), limit: NonZeroUsize::MAX };
    let tasks = journal.tasks(tree).await?;
    let completed = tasks.iter().filter(|task| task.status == TaskStatus::Completed).count();
    if completed != children as usize + 1 {
        return Err(format!("only {completed} completed").into());
    }
    Ok(())
}

fn world(journal: Arc<dyn Journal>, model: &Model<'_>) -> Result<RuntimeDeps, Error> {
    let child: Arc<dyn Provider> = match model {
        Model::At(url) => {
            let config = ChatConfig {
                name: CHILD.to_owned(),
                base_url: Endpoint::parse(url)?,
                api_key: None,
                quirks: ChatQuirks::default(),
            };
            Arc::new(ChatCompletions::new(config, Transport::new(&TransportConfig::default())?))
        }
        Model::InMemory => Arc::new(TimerModel),
    };
    let reviewer = AgentDefinition {
        model: Some(ModelRef::parse(&format!("{CHILD}/m"))?),
        ..AgentDefinition::new(AgentName::parse(REVIEWER)?, CONTEXT)
    };
    Ok(RuntimeDeps {
        journal,
        models: Arc::new(Providers { child }),
        tools: Arc::new(NoTools),
        gate: Arc::new(OpenGate),
        agents: Some(Arc::new(Reviewer(Arc::new(reviewer)))),
        runners: Vec::new(),
        prices: Arc::default(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    })
}

const REVIEWER: &str = "reviewer";

/// The provider of the caller; its model names are the number of children.
const CALLER: &str = "caller";

/// The provider of the children.
const CHILD: &str = "child";

struct Reviewer(Arc<AgentDefinition>);

impl Agents for Reviewer {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        (name == REVIEWER).then(|| Arc::clone(&self.0))
    }

    fn list(&self) -> Arc<[Arc<AgentDefinition>]> {
        Arc::new([Arc::clone(&self.0)])
    }

    fn system_prompt(&self, _: PromptSource<'_>) -> String {
        self.0.context.clone()
    }
}

struct Providers {
    child: Arc<dyn Provider>,
}

impl Models for Providers {
    fn provider(
        &self,
        model: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        if model.provider() == CHILD {
            return Ok(Arc::clone(&self.child));
        }
        let children = model.model().parse().map_err(|_| format!("`{model}` calls no agent"))?;
        Ok(Arc::new(Caller { children }))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

/// Calls this many agents, then ends.
struct Caller {
    children: u32,
}

impl Provider for Caller {
    fn open(&self, request: Request) -> PieceSource {
        if request.messages.len() > 1 {
            return Box::pin(stream::iter(text_answer("Everything was reviewed.").map(Ok)));
        }
        let target = |number| json!({ "agent": REVIEWER, "prompt": prompt(number) });
        let targets: Vec<_> = (0..self.children).map(target).collect();
        let call = Piece::ToolCall {
            block: 0,
            id: Some("call_1".to_owned()),
            name: Some("call_agent".to_owned()),
            arguments: json!({ "targets": targets, "join": "all" }).to_string(),
        };
        let stop = StopSignal { reason: StopReason::ToolUse, raw: "tool_calls".to_owned() };
        Box::pin(stream::iter([call, Piece::Stop(stop), Piece::Done].map(Ok)))
    }
}

/// Answers like the server, without a connection.
struct TimerModel;

impl Provider for TimerModel {
    fn open(&self, _: Request) -> PieceSource {
        let slept = async {
            tokio::time::sleep(ANSWER_AFTER).await;
            stream::iter(text_answer(TEXT).map(Ok))
        };
        Box::pin(stream::once(slept).flatten())
    }
}

fn text_answer(text: &str) -> [Piece; 4] {
    let usage = Usage { input_tokens: 20, output_tokens: 8, ..Usage::default() };
    let stop = StopSignal { reason: StopReason::EndTurn, raw: "stop".to_owned() };
    [
        Piece::Text { block: 0, delta: text.to_owned() },
        Piece::Usage(usage),
        Piece::Stop(stop),
        Piece::Done,
    ]
}
