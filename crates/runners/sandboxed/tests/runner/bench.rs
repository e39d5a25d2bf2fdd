//! A runner with a workspace, a journal and a scripted model.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Cancel, Journal, RandomIds, Read, Runner, RunnerError, RunnerTask, SystemClock,
};
use antiphon_core::{
    Event, EventBody, Message, ModelRef, Position, PriceTable, Provider, RawJson, TaskId,
    TaskStatus, UserMessage,
};
use antiphon_runtime::{Models, NewTask, NoTools, OpenGate, Orchestrator, RuntimeDeps, TaskState};
use antiphon_sandbox::{Limits as SandboxLimits, Network, Policy, Protected, SandboxMode};
use antiphon_sandboxed::{
    SandboxRunner, SandboxRunnerSettings, WORKERS_DEFAULT, WorkerCommand, WorkerLimits,
};
use antiphon_scripted::{Script, ScriptedProvider};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// How long anything may take that should happen soon.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    /// Holds the workspace and our own folders.
    pub(crate) folder: TempDir,
    pub(crate) root: PathBuf,
    /// In the command line of every process of the worker, and of what its tools leave.
    pub(crate) token: String,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) runner: Arc<SandboxRunner>,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) config: Value,
}

impl Bench {
    pub(crate) fn new(script: &str) -> Self {
        Self::with(scripted(script), |_| {})
    }

    pub(crate) fn with(
        provider: Arc<dyn Provider>,
        change: impl FnOnce(&mut SandboxRunnerSettings),
    ) -> Self {
        let folder = tempfile::tempdir_in(scratch()).unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let token = token();
        let mut settings = settings(folder.path(), &root, &token);
        change(&mut settings);
        let runner = Arc::new(SandboxRunner::new(settings).unwrap());
        let (journal, config) = (Arc::new(MemoryJournal::new()), json!({}));
        Self { folder, root, token, journal, runner, provider, config }
    }

    /// A path outside of the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Accepts a task that does not run yet.
    pub(crate) async fn accept(&self) -> TaskId {
        self.keeper().invoke(new_task("go")).await.unwrap().task_id
    }

    /// An orchestrator that never works itself.
    pub(crate) fn keeper(&self) -> Orchestrator {
        Orchestrator::record_only(world(
            Arc::clone(&self.journal) as Arc<dyn Journal>,
            Arc::clone(&self.provider),
            Arc::new(NoTools),
        ))
    }

    pub(crate) fn run(&self, task_id: &TaskId) -> RunnerTask {
        RunnerTask {
            task_id: task_id.clone(),
            config: self.config.clone(),
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            provider: Arc::clone(&self.provider),
            cancel: Cancel::never(),
            interrupt: Cancel::never(),
            shutdown: Cancel::never(),
            limits: antiphon_core::TaskLimits::default(),
            dispatches: antiphon_core::port::DispatchPermission::Allowed,
            display: Arc::new(antiphon_core::port::HiddenAnswer),
            updates: Box::new(antiphon_core::port::NoTaskUpdates),
            input: Arc::new(antiphon_core::port::UncheckedInput),
        }
    }

    /// Runs a task once.
    pub(crate) async fn once(&self, task_id: &TaskId) -> Result<(), RunnerError> {
        tokio::time::timeout(SOON, self.runner.run(self.run(task_id))).await.unwrap()
    }

    /// A task from its acceptance to its end.
    pub(crate) async fn whole(&self) -> TaskState {
        let task_id = self.accept().await;
        self.once(&task_id).await.unwrap();
        self.state(&task_id).await
    }

    pub(crate) async fn state(&self, task_id: &TaskId) -> TaskState {
        self.keeper().task(task_id).await.unwrap()
    }

    /// What the tools of a task said, in order.
    pub(crate) async fn results(&self, task_id: &TaskId) -> Vec<(String, bool)> {
        let state = self.state(task_id).await;
        let result = |message: &Arc<Message>| match &**message {
            Message::ToolResult(result) => Some((format!("{:?}", result.content), result.is_error)),
            Message::User(_) | Message::Assistant(_) => None,
        };
        state.messages().iter().filter_map(result).collect()
    }

    /// The lines of a file that tools wrote.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.root.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Nothing is left: no process, no folder.
    pub(crate) fn assert_clean(&self) {
        let left = processes(&self.token);
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(fs::read_dir(self.outside("tmp")).unwrap().count(), 0);
    }
}

pub(crate) fn settings(folder: &Path, root: &Path, token: &str) -> SandboxRunnerSettings {
    SandboxRunnerSettings {
        worker: WorkerCommand { program: example("task_worker"), args: vec![token.into()] },
        policy: Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: folder.join("tmp"),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: antiphon_sandbox::UnixSockets::Refused,
            repository: None,
            git_programs: antiphon_sandbox::GitPrograms::GitOnly,
            runs: antiphon_sandbox::Runs::Commands,
            limits: SandboxLimits::default(),
        },
        limits: WorkerLimits::default(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        worker_settings: json!({ "root": root, "token": token, "deaf": false, "careful": false, "shell": false }),
        kept: None,
        workers_max: WORKERS_DEFAULT,
    }
}

pub(crate) fn world(
    journal: Arc<dyn Journal>,
    provider: Arc<dyn Provider>,
    tools: Arc<dyn antiphon_core::ToolExecutor>,
) -> RuntimeDeps {
    RuntimeDeps {
        journal,
        models: Arc::new(TheModel(provider)),
        tools,
        gate: Arc::new(OpenGate),
        agents: None,
        runners: Vec::new(),
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: antiphon_runtime::OrchestratorSettings::default(),
    }
}

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

pub(crate) fn scripted(script: &str) -> Arc<dyn Provider> {
    Arc::new(ScriptedProvider::new(Script::parse(script).unwrap()))
}

/// A script of one call, and then a last word.
pub(crate) fn calls(tool: &str, arguments: Value) -> String {
    let arguments = arguments.to_string();
    format!(
        "name = 'test'\n[[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ call = {{ name = '{tool}', \
         arguments_json = '''{arguments}''' }} }}]\n[[reply]]\nsteps = [{{ text = 'done' }}]\n"
    )
}

pub(crate) fn new_task(text: &str) -> NewTask {
    let model = ModelRef::parse("scripted/test").unwrap();
    let message = UserMessage::text(text, chrono::DateTime::UNIX_EPOCH);
    NewTask { system_prompt: "Be brief.".to_owned(), ..NewTask::new("tester", model, message) }
}

pub(crate) async fn events(journal: &dyn Journal) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = Position(0);
    loop {
        let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
        let page = journal.read(read).await.unwrap();
        if page.events.is_empty() {
            return events;
        }
        after = page.next;
        events.extend(page.events);
    }
}

/// How often a task was given a terminal status.
pub(crate) fn ends(events: &[Event]) -> Vec<TaskStatus> {
    let status = |event: &Event| {
        let EventBody::StatusChanged(change) = &event.body else { return None };
        change.status.is_terminal().then_some(change.status)
    };
    events.iter().filter_map(status).collect()
}

/// Fires a [`Cancel`] when it is dropped.
pub(crate) fn switch() -> (oneshot::Sender<()>, Cancel) {
    let (sender, receiver) = oneshot::channel();
    (sender, Cancel::when(async { drop(receiver.await) }))
}

/// A unique number of seconds to sleep: recognized in a list of processes.
pub(crate) fn token() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("9{:0>7}.{next:0>3}", std::process::id())
}

/// The processes of the machine that have `token` as an argument, the deepest last.
pub(crate) fn processes(token: &str) -> Vec<i32> {
    let found = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let has = line.split(|byte| *byte == 0).any(|argument| argument == token.as_bytes());
        has.then_some(pid)
    });
    let mut found: Vec<i32> = found.collect();
    found.sort_by_key(|pid| depth(*pid));
    found
}

fn depth(pid: i32) -> usize {
    let parent = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    match parent() {
        Some(parent) if parent > 0 => 1 + depth(parent),
        Some(_) | None => 0,
    }
}

/// Kills the process that works, or says that there is none: guard, first one, and the one that
/// works have the same command line.
pub(crate) fn kill_worker(token: &str) -> bool {
    match processes(token).get(2) {
        Some(pid) => {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
        }
        None => false,
    }
}

/// Waits until `happened`, which must be soon.
pub(crate) async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < SOON, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An example of this crate, built beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "{} is not built: `cargo build --examples`", path.display());
    path
}

/// A folder that can be written to and is not beneath one that a sandbox has of its own: that of
/// the build, unless that is in `/tmp`.
pub(crate) fn scratch() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let candidates = [env!("CARGO_TARGET_TMPDIR"), env!("CARGO_MANIFEST_DIR")].map(PathBuf::from);
    let others = ["/var/lib", "/srv", "/opt"].map(PathBuf::from);
    let own = ["/tmp", "/var/tmp", "/run", "/dev"];
    let fits = |path: &PathBuf| {
        !own.iter().any(|own| path.starts_with(own)) && tempfile::tempdir_in(path).is_ok()
    };
    candidates.into_iter().chain(home).chain(others).find(fits).unwrap()
}
