//! The local side: an orchestrator whose tasks a remote agent runs.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_a2a::{A2aRunner, RemoteAgentConfig, RemoteAgents, RetryPolicy};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, Runner, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{
    Event, EventBody, InputBlock, Message, ModelRef, Position, RunnerConfig, TaskId, TaskStatus,
    TaskSummary, UserMessage,
};
use antiphon_runtime::{NewTask, Orchestrator, RuntimeDeps, TaskState};
use antiphon_test_server::{TOKEN, runtime_deps};
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Retries at once, and gives up soon: then the task waits.
pub(crate) const HASTY: RetryPolicy = RetryPolicy {
    attempts_max: 2,
    first_wait: Duration::from_millis(1),
    wait_max: Duration::from_millis(5),
};

/// A runner with one remote agent, `there`.
pub(crate) fn runner(card: &str, hosts: &[&str]) -> A2aRunner {
    let mut agents = RemoteAgents::default();
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let config = RemoteAgentConfig {
        card: card.to_owned(),
        token: Some(TOKEN.into()),
        hosts,
        ..RemoteAgentConfig::default()
    };
    agents.add("there", &config).unwrap();
    A2aRunner::new(agents, HASTY)
}

pub(crate) struct Local {
    pub(crate) orchestrator: Orchestrator,
}

pub(crate) fn new_task(text: &str) -> NewTask {
    let message = UserMessage::text(text, SystemClock.now());
    let model = ModelRef::parse("scripted/here").unwrap();
    let config = RunnerConfig::new("a2a").with_config(json!({ "peer": "there" }));
    NewTask { runner: Some(config), ..NewTask::new("tester", model, message) }
}

impl Local {
    pub(crate) fn new(card: &str) -> Self {
        Self::with(runner(card, &[]), Arc::new(MemoryJournal::new()))
    }

    pub(crate) fn with(runner: A2aRunner, journal: Arc<MemoryJournal>) -> Self {
        let runners: Vec<Arc<dyn Runner>> = vec![Arc::new(runner)];
        let deps = RuntimeDeps {
            runners,
            ..runtime_deps(journal, "name = \"here\"\n[[reply]]\nstep = [{ text = \"local\" }]")
        };
        Self { orchestrator: Orchestrator::new(deps) }
    }

    pub(crate) async fn start(&self, text: &str) -> TaskId {
        self.orchestrator.invoke(new_task(text)).await.unwrap().task_id
    }

    pub(crate) async fn ended(&self, task_id: &TaskId) -> TaskState {
        self.until(task_id, EventBody::ends_task).await;
        self.orchestrator.task(task_id).await.unwrap()
    }

    /// The code and the text of a failed task.
    pub(crate) async fn failure(&self, text: &str) -> (String, String) {
        let task_id = self.start(text).await;
        let state = self.ended(&task_id).await;
        assert_eq!(state.status, TaskStatus::Failed, "{:?}", state.detail);
        let detail = state.detail.unwrap();
        let field = |name: &str| detail[name].as_str().unwrap().to_owned();
        (field("code"), field("error"))
    }

    /// Returns at the first event of a task that is wanted.
    pub(crate) async fn until(
        &self,
        task_id: &TaskId,
        wanted: impl Fn(&EventBody) -> bool,
    ) -> Event {
        let mut events = self.orchestrator.follow(Some(task_id.clone()), Position(0));
        let found = async {
            loop {
                let event = events.next().await.unwrap();
                if wanted(&event.body) {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the event comes")
    }

    /// Waits until a task has this status, and returns its detail.
    pub(crate) async fn until_status(&self, task_id: &TaskId, status: TaskStatus) -> Value {
        let is = |body: &EventBody| matches!(body, EventBody::StatusChanged(change) if change.status == status);
        let EventBody::StatusChanged(change) = self.until(task_id, is).await.body else {
            panic!("it waited for another event")
        };
        change.detail.unwrap_or_default()
    }

    pub(crate) async fn summary(&self, task_id: &TaskId) -> TaskSummary {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        self.orchestrator.tasks(query).await.unwrap().remove(0)
    }

    pub(crate) async fn stop(self) {
        assert!(self.orchestrator.shutdown(PATIENCE).await, "it stops in time");
    }
}

/// What was said in a task, with its speakers.
pub(crate) fn texts(state: &TaskState) -> Vec<String> {
    let line = |message: &Arc<Message>| match &**message {
        Message::User(user) => {
            let texts = user.content.iter().filter_map(|block| match block {
                InputBlock::Text(text) => Some(text.text.as_str()),
                InputBlock::Image(_) => None,
            });
            format!("user: {}", texts.collect::<Vec<_>>().join("\n"))
        }
        Message::Assistant(answer) => format!("agent: {}", answer.text()),
        Message::ToolResult(_) => "result".to_owned(),
    };
    state.messages().iter().map(line).collect()
}
