//! A server with a scripted model and a journal in memory.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_api::CreateTask;
use antiphon_client::{Client, ClientConfig, Endpoint, RetryPolicy, Timeouts};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Journal, JournalLog};
use antiphon_core::{AgentName, ErrorResponse, Event, ModelRef, Position, TaskId};
use antiphon_interface_transport::{
    Listeners, ServerConfig, ServerDeps, ServerLimits, Token, UnixSocket,
};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps};
use async_trait::async_trait;
use tokio::net::UnixListener;

/// Retries at once, and often.
pub(crate) const PERSISTENT: RetryPolicy = RetryPolicy {
    attempts_max: 2000,
    first_wait: Duration::from_millis(1),
    wait_max: Duration::from_millis(5),
};

const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "steps", results_since_user = 0 }
step = [
    { text = "Looking." },
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "look", arguments = { at = "b" } } },
]
[[reply]]
when = { last_user_contains = "steps", results_since_user = 2 }
step = [{ call = { name = "look", arguments = { at = "c" } } }]
[[reply]]
when = { last_user_contains = "ask", results_since_user = 0 }
step = [{ call = { name = "act", arguments = {} } }]
[[reply]]
step = [{ text = "Done with {{last_user}}" }]
"#;

struct TestTaskFactory;

#[async_trait]
impl TaskFactory for TestTaskFactory {
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = ModelRef::parse("scripted/test").unwrap();
        let agent = request.agent.unwrap_or_else(|| "default".to_owned());
        Ok(NewTask::new(agent, model, request.message))
    }

    fn agents(&self) -> Vec<AgentName> {
        Vec::new()
    }
}

/// A server that runs. Its journal outlives it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) journal: Arc<MemoryJournal>,
    running: RunningServer,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::restart(Arc::new(MemoryJournal::new()), "127.0.0.1:0".parse().unwrap()).await
    }

    /// A server with this journal at this address.
    pub(crate) async fn restart(journal: Arc<MemoryJournal>, address: SocketAddr) -> Self {
        Self::listen(journal, address, None).await
    }

    /// A server that listens on this socket, too.
    pub(crate) async fn with_socket(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let uid = std::fs::metadata(path).unwrap().uid();
        let address = "127.0.0.1:0".parse().unwrap();
        let socket = Some(UnixSocket { listener, uid });
        Self::listen(Arc::new(MemoryJournal::new()), address, socket).await
    }

    async fn listen(
        journal: Arc<MemoryJournal>,
        address: SocketAddr,
        socket: Option<UnixSocket>,
    ) -> Self {
        let used = Arc::clone(&journal) as Arc<dyn Journal>;
        let orchestrator = Orchestrator::new(runtime_deps(used, SCRIPT));
        orchestrator.recover().await.unwrap();
        let deps = ServerDeps {
            orchestrator,
            task_factory: Arc::new(TestTaskFactory),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: vec!["127.0.0.1".to_owned()],
            limits: ServerLimits {
                heartbeat: Duration::from_millis(50),
                ..ServerLimits::default()
            },
        };
        let config = ServerConfig::new(deps, antiphon_http::interface(None));
        let listeners = |tcp| Listeners { tcp: Some(tcp), tls: None, socket };
        let running = RunningServer::start(address, config, listeners).await;
        Self { address: running.address, journal, running }
    }

    pub(crate) async fn stop(self) -> (Arc<MemoryJournal>, SocketAddr) {
        self.running.stop().await;
        (self.journal, self.address)
    }

    pub(crate) fn client(&self) -> Client {
        client(Endpoint::parse(&format!("http://{}", self.address)).unwrap(), TOKEN)
    }

    /// Creates a task with this text and waits until it has ended or is suspended.
    pub(crate) async fn task(&self, text: &str) -> TaskId {
        let client = self.client();
        let created = client.create_task(&CreateTask::text(text).unwrap(), None).await.unwrap();
        client.wait_for_task(&created.task_id).await.unwrap();
        created.task_id
    }

    /// The whole journal, or one task of it.
    pub(crate) async fn events(&self, task_id: Option<&TaskId>) -> Vec<Event> {
        let read = antiphon_core::port::Read {
            task_id: task_id.cloned(),
            after: Position(0),
            limit: std::num::NonZeroUsize::MAX,
        };
        self.journal.read(read).await.unwrap().events
    }
}

pub(crate) fn client(endpoint: Endpoint, token: &str) -> Client {
    Client::new(ClientConfig { endpoint, token: token.into(), timeouts: Timeouts::default() })
        .unwrap()
}
