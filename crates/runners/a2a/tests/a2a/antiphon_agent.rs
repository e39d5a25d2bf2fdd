//! The A2A server of another Antiphon.

use std::sync::Arc;

use antiphon_a2a_api::{A2a, A2aConfig};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{AgentName, ErrorResponse, ModelRef, TaskId, TaskSummary};
use antiphon_interface_transport::{Listeners, ServerConfig, ServerDeps, ServerLimits, Token};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps};
use async_trait::async_trait;
use tempfile::TempDir;

const SCRIPT: &str = r#"
name = "there"
[[reply]]
when = { last_user_contains = "act", results_since_user = 0 }
step = [{ text = "I act." }, { call = { name = "act", arguments = {} } }]
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "One moment" }, { stall = true }]
[[reply]]
when = { last_user_contains = "break" }
step = [{ error = { kind = "invalid_request", message = "it broke" } }]
[[reply]]
step = [{ text = "You " }, { text = "said {{last_user}}" }]
"#;

struct Factory(Orchestrator);

#[async_trait]
impl TaskFactory for Factory {
    fn agents(&self) -> Vec<AgentName> {
        vec![AgentName::parse("helper").unwrap()]
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = ModelRef::parse("scripted/there").unwrap();
        let task = NewTask::new(request.agent.unwrap_or_default(), model, request.message);
        let Some(session_id) = request.session_id else { return Ok(task) };
        let which = TaskSelector::Session(session_id.clone());
        let query = TaskQuery { which, limit: std::num::NonZeroUsize::MIN };
        let last = self.0.tasks(query).await.unwrap().remove(0);
        let state = self.0.task(&last.task_id).await.unwrap();
        let before = PriorHistory::Messages(state.conversation.messages().to_vec());
        Ok(NewTask { session_id: Some(session_id), before, ..task })
    }
}

/// Another Antiphon with the agent `helper`.
pub(crate) struct AntiphonAgent {
    pub(crate) orchestrator: Orchestrator,
    server: RunningServer,
    a2a: A2a,
    _folder: TempDir,
}

impl AntiphonAgent {
    pub(crate) async fn new() -> Self {
        Self::at("127.0.0.1:0", Arc::new(MemoryJournal::new())).await
    }

    pub(crate) async fn at(address: &str, journal: Arc<MemoryJournal>) -> Self {
        let orchestrator = Orchestrator::new(runtime_deps(journal, SCRIPT));
        orchestrator.recover().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let a2a = A2a::new(A2aConfig::new(folder.path())).unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(Factory(orchestrator.clone())),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: Vec::new(),
            limits: ServerLimits::default(),
        };
        let server = ServerConfig::new(deps, a2a.interface());
        let server = RunningServer::start(address.parse().unwrap(), server, Listeners::from).await;
        Self { orchestrator, server, a2a, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    pub(crate) fn card(&self) -> String {
        format!("{}/a2a/helper/.well-known/agent-card.json", self.url())
    }

    /// Its root tasks.
    pub(crate) async fn tasks(&self) -> Vec<TaskSummary> {
        let limit = std::num::NonZeroUsize::MAX;
        self.orchestrator.tasks(TaskQuery { which: TaskSelector::Roots, limit }).await.unwrap()
    }

    pub(crate) async fn only_task(&self) -> TaskId {
        let tasks = self.tasks().await;
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks[0].task_id.clone()
    }

    pub(crate) async fn stop(self) {
        self.a2a.shutdown().await;
        self.server.stop().await;
    }
}
