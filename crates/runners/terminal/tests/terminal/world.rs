//! A place to run terminals in, and a task that runs in one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::{MemoryJournal, ScenarioProvider};
use antiphon_core::port::{
    Append, Expected, Journal, Read, Runner, RunnerError, RunnerTask, TaskUpdates,
};
use antiphon_core::{
    Cancel, EventBody, HandlingMode, InteractionId, MessageAppended, MessageQueued, Position,
    SessionId, StatusChanged, TaskCreated, TaskId, UserMessage,
};
use antiphon_terminal::{GuardCommand, TerminalProfile, TerminalRunner, TerminalSettings};
use async_trait::async_trait;
use chrono::Utc;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A place to run terminals in.
pub(crate) struct World {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) runner: Arc<TerminalRunner>,
    pub(crate) tmp: TempDir,
}

/// A task that runs in a terminal.
pub(crate) struct Running {
    pub(crate) task_id: TaskId,
    run: JoinHandle<Result<(), RunnerError>>,
    cancel: Option<oneshot::Sender<()>>,
    rest: Option<oneshot::Sender<()>>,
    changes: watch::Sender<u64>,
    journal: Arc<dyn Journal>,
}

/// A profile that runs this in a shell. It waits for input at the prompt `> `.
pub(crate) fn script(text: &str) -> TerminalProfile {
    let command = ["bash", "-c", text].map(str::to_owned).into();
    let ready = Some("^> $".to_owned());
    TerminalProfile { command, ready, quiet_ms: 100, ..TerminalProfile::of("bash") }
}

/// An interactive shell without user settings.
pub(crate) fn shell() -> TerminalProfile {
    let command = ["bash", "--norc", "--noprofile"].map(str::to_owned).into();
    let env = BTreeMap::from([("PS1".to_owned(), "ready> ".to_owned())]);
    let ready = Some("^ready> $".to_owned());
    TerminalProfile { command, env, ready, quiet_ms: 100, ..TerminalProfile::of("bash") }
}

pub(crate) fn settings(tmp: &TempDir, profile: TerminalProfile) -> TerminalSettings {
    let root = tmp.path().join("root");
    let _ = std::fs::create_dir(&root);
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let path = std::env::var("PATH").unwrap();
    TerminalSettings {
        profiles: BTreeMap::from([("test".to_owned(), profile)]),
        folder: tmp.path().join("terminals"),
        root,
        environment: vec![variable("PATH", &path), variable("HOME", "/nowhere")],
        guard: GuardCommand {
            program: PathBuf::from(env!("CARGO_BIN_EXE_antiphon-terminal-guard")),
            args: Vec::new(),
        },
    }
}

impl World {
    pub(crate) fn new(profile: TerminalProfile) -> Self {
        Self::with_journal(profile, Arc::new(MemoryJournal::new()))
    }

    pub(crate) fn with_journal(profile: TerminalProfile, journal: Arc<dyn Journal>) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let runner = Arc::new(TerminalRunner::new(settings(&tmp, profile)).unwrap());
        Self { journal, runner, tmp }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.tmp.path().join("root")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.tmp.path().join("terminals")
    }

    /// A new task, and this to begin with.
    pub(crate) async fn task(&self, context: &str, message: Option<&str>) -> TaskId {
        let task_id = TaskId::from(InteractionId::new().0);
        let created = TaskCreated {
            system_prompt: context.to_owned(),
            ..TaskCreated::new("tester", SessionId::from(InteractionId::new().0))
        };
        let mut events = vec![EventBody::from(created)];
        if let Some(text) = message {
            let message = antiphon_core::Message::User(UserMessage::text(text, Utc::now()));
            events.push(MessageAppended::new(message).into());
        }
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::NoTask,
            at: Utc::now(),
            events,
            key: None,
        };
        self.journal.append(append).await.unwrap();
        task_id
    }

    pub(crate) fn start(&self, task_id: &TaskId) -> Running {
        let (cancel, canceled) = oneshot::channel::<()>();
        let (rest, rested) = oneshot::channel::<()>();
        let changes = watch::Sender::new(0);
        let fires = |signal: oneshot::Receiver<()>| {
            Cancel::when(async move {
                if signal.await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        };
        let run = RunnerTask {
            task_id: task_id.clone(),
            config: json!({ "profile": "test" }),
            journal: self.journal.clone(),
            provider: Arc::new(ScenarioProvider::new(&[])),
            cancel: fires(canceled),
            interrupt: Cancel::never(),
            shutdown: fires(rested),
            limits: antiphon_core::TaskLimits::default(),
            dispatches: antiphon_core::port::DispatchPermission::Allowed,
            updates: Box::new(ChangeUpdates(changes.subscribe())),
            input: Arc::new(antiphon_core::port::UncheckedInput),
            display: Arc::new(antiphon_core::port::HiddenAnswer),
        };
        let runner = Arc::clone(&self.runner);
        #[expect(clippy::disallowed_methods, reason = "it is joined in the end")]
        let run = tokio::spawn(async move { runner.run(run).await });
        let journal = Arc::clone(&self.journal);
        let task_id = task_id.clone();
        Running { task_id, run, cancel: Some(cancel), rest: Some(rest), changes, journal }
    }

    /// A task that begins with this.
    pub(crate) async fn begin(&self, message: Option<&str>) -> Running {
        let task_id = self.task("", message).await;
        self.start(&task_id)
    }

    pub(crate) async fn events(&self, task_id: &TaskId) -> Vec<EventBody> {
        events(&*self.journal, task_id).await
    }

    /// How the task ended.
    pub(crate) async fn end(&self, task_id: &TaskId) -> StatusChanged {
        match self.events(task_id).await.pop().unwrap() {
            EventBody::StatusChanged(change) => change,
            other => panic!("it has not ended: {other:?}"),
        }
    }
}

pub(crate) async fn events(journal: &dyn Journal, task_id: &TaskId) -> Vec<EventBody> {
    let limit = NonZeroUsize::new(1000).unwrap();
    let read = Read { task_id: Some(task_id.clone()), after: Position(0), limit };
    journal.read(read).await.unwrap().events.into_iter().map(|event| event.body).collect()
}

impl Running {
    /// A message arrives.
    pub(crate) async fn say(&self, text: &str, mode: HandlingMode) -> InteractionId {
        let id = InteractionId::new();
        let message = UserMessage::text(text, Utc::now());
        let append = Append {
            task_id: self.task_id.clone(),
            expected: Expected::Exists,
            at: Utc::now(),
            events: vec![MessageQueued::of_user(id, mode, message).into()],
            key: None,
        };
        self.journal.append(append).await.unwrap();
        self.changes.send_modify(|times| *times += 1);
        id
    }

    pub(crate) fn cancel(&mut self) {
        self.cancel.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn rest(&mut self) {
        self.rest.take().unwrap().send(()).unwrap();
    }

    /// Lets go of it, as if this process had died.
    pub(crate) async fn abandon(self) {
        self.run.abort();
        assert!(self.run.await.unwrap_err().is_cancelled());
    }

    pub(crate) async fn ended(self) -> Result<(), RunnerError> {
        let Self { run, cancel: _cancel, rest: _rest, .. } = self;
        timeout(LONG, run).await.expect("it does not end").unwrap()
    }
}

struct ChangeUpdates(watch::Receiver<u64>);

#[async_trait]
impl TaskUpdates for ChangeUpdates {
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
