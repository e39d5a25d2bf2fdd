//! A server with a scripted model and a journal in memory.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_api::CreateTask;
use antiphon_client::{Client, ClientConfig, Endpoint, RetryPolicy, Timeouts};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Gate, GateRequest, Journal, JournalLog, RandomIds, Rule, SystemClock, ToolContext, Verdict,
};
use antiphon_core::{
    AgentName, Effect, ErrorResponse, Event, ModelRef, Position, PriceTable, Provider, RawJson,
    TaskId, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_interface_transport::{
    Limits, Listeners, ServerConfig, ServerDeps, Token, UnixSocket, serve,
};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{Models, NewTask, Orchestrator, RuntimeDeps, Settings};
use antiphon_scripted::{Script, ScriptedProvider};
use async_trait::async_trait;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

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

struct Scripted;

impl Models for Scripted {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let script = Script::parse(SCRIPT).map_err(|error| error.to_string())?;
        Ok(Arc::new(ScriptedProvider::new(script)))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct AskBeforeAct;

#[async_trait]
impl Gate for AskBeforeAct {
    fn judge(&self, call: &GateRequest<'_>) -> Verdict {
        match call.tool {
            "act" => Verdict::Ask { reason: "It acts.".to_owned(), rule: Rule("act".to_owned()) },
            _ => Verdict::Allow,
        }
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}

struct TestTools;

#[async_trait]
impl ToolExecutor for TestTools {
    fn tools(&self) -> Vec<Tool> {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: name.to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        };
        vec![tool("look"), tool("act")]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        ["look", "act"].contains(&tool).then_some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        _: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(format!("{tool} {arguments}: done")))
    }
}

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
    orchestrator: Orchestrator,
    stop: oneshot::Sender<()>,
    serving: JoinSet<()>,
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
        let orchestrator = Orchestrator::new(RuntimeDeps {
            journal: Arc::clone(&journal) as Arc<dyn Journal>,
            models: Arc::new(Scripted),
            tools: Arc::new(TestTools),
            gate: Arc::new(AskBeforeAct),
            agents: None,
            runners: Vec::new(),
            prices: Arc::new(PriceTable::default()),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            settings: Settings::default(),
        });
        orchestrator.recover().await.unwrap();
        let tcp = TcpListener::bind(address).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(TestTaskFactory),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: vec!["127.0.0.1".to_owned()],
            limits: Limits { heartbeat: Duration::from_millis(50), ..Limits::default() },
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        let listeners = Listeners { tcp: Some(tcp), tls: None, socket };
        serving.spawn(async move {
            let stopped = async { drop(stopped.await) };
            let config = ServerConfig::new(deps, antiphon_http::interface(None));
            serve(listeners, config, stopped).await.unwrap();
        });
        Self { address, journal, orchestrator, stop, serving }
    }

    pub(crate) async fn stop(mut self) -> (Arc<MemoryJournal>, SocketAddr) {
        drop(self.stop);
        self.serving.join_next().await.unwrap().unwrap();
        self.orchestrator.shutdown(Duration::from_secs(5)).await;
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
