//! Ten thousand tasks at once, and one task of five thousand turns, with a journal on disk.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{RandomIds, SystemClock, TaskIndex, TaskQuery, TaskSelector};
use antiphon_core::{ModelRef, Position, Provider, RawJson, TaskStatus, UserMessage};
use antiphon_runtime::{
    Models, NewTask, NoTools, OpenGate, Orchestrator, OrchestratorError, OrchestratorSettings,
    RuntimeDeps,
};
use antiphon_scripted::{Script, ScriptedProvider};
use antiphon_sqlite::{OpenError, SqliteJournal, SyncPolicy};

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

fn orchestrator(folder: &Path, script: &str) -> Orchestrator {
    let journal = SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Normal).unwrap();
    Orchestrator::new(RuntimeDeps {
        journal: Arc::new(journal),
        models: Arc::new(Scripted(ScriptedProvider::new(Script::parse(script).unwrap()))),
        tools: Arc::new(NoTools),
        gate: Arc::new(OpenGate),
        agents: None,
        runners: Vec::new(),
        prices: Arc::default(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    })
}

fn task(text: &str) -> NewTask {
    let message = UserMessage::text(text, chrono::DateTime::UNIX_EPOCH);
    NewTask::new("scale", ModelRef::parse("scripted/scale").unwrap(), message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_tasks_at_once_all_complete() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
name = "scale"
[[reply]]
when = { turn = 0 }
step = [{ delay_ms = 200 }, { call = { name = "nothing", arguments = {} } }]
[[reply]]
step = [{ text = "Done: {{last_user}}" }]
"#;
    let orchestrator = orchestrator(folder.path(), script);
    let mut follower = orchestrator.follow(None, Position(0));
    let mut invoked = tokio::task::JoinSet::new();
    for number in 0..10_000 {
        let orchestrator = orchestrator.clone();
        invoked.spawn(async move { orchestrator.invoke(task(&number.to_string())).await });
    }
    invoked.join_all().await.into_iter().collect::<Result<Vec<_>, OrchestratorError>>().unwrap();
    let (mut ended, mut last) = (0, Position(0));
    while ended < 10_000 {
        let event = follower.next().await.unwrap();
        assert_eq!(event.position.0, last.0 + 1);
        last = event.position;
        ended += usize::from(event.body.ends_task());
    }
    let limit = std::num::NonZeroUsize::new(20_000).unwrap();
    let all = orchestrator.tasks(TaskQuery { which: TaskSelector::All, limit }).await.unwrap();
    assert_eq!(all.len(), 10_000);
    for task in all {
        assert_eq!(task.status, TaskStatus::Completed);
        assert_eq!(task.preview.unwrap(), format!("Done: {}", task.title), "its own answer");
    }
    assert!(orchestrator.shutdown(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_five_thousand_turns_completes_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
name = "scale"
[[reply]]
when = { turn = 4999 }
step = [{ text = "Done." }]
[[reply]]
step = [{ call = { name = "nothing", arguments = {} } }]
"#;
    let first = orchestrator(folder.path(), script);
    let task_id = first.invoke(task("go")).await.unwrap().task_id;
    let state = first.wait(&task_id).await.unwrap();
    assert_eq!((state.status, state.turns), (TaskStatus::Completed, 5_000));
    first.shutdown(Duration::from_secs(5)).await;
    drop(first);
    let second = orchestrator(folder.path(), script);
    assert_eq!(second.task(&task_id).await.unwrap(), state);
}

#[tokio::test]
async fn a_second_process_is_refused_with_the_owner_of_the_journal_and_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let owner = SqliteJournal::open(&path, SyncPolicy::Normal).unwrap();
    let refused = SqliteJournal::open(&path, SyncPolicy::Normal).unwrap_err();
    let pid = std::process::id().to_string();
    assert!(matches!(&refused, OpenError::Owned { pid: found, .. } if *found == pid), "{refused}");
    let reader = SqliteJournal::open_read_only(&path).unwrap();
    let limit = std::num::NonZeroUsize::MIN;
    let tasks = reader.tasks(TaskQuery { which: TaskSelector::All, limit }).await.unwrap();
    assert_eq!(tasks, []);
    drop(owner);
}
