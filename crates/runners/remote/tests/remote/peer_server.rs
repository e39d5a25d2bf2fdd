//! The peer: an orchestrator with a scripted model, harmless tools, and an HTTP server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antiphon_client::{Client, ClientConfig, Endpoint, Timeouts};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Journal, Runner};
use antiphon_core::{AgentName, CallableAgents, ErrorResponse, Event, ModelRef, Position, TaskId};
use antiphon_interface_transport::{Listeners, ServerConfig, ServerDeps, ServerLimits, Token};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory, RuntimeDeps};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps};
use async_trait::async_trait;

use crate::local::read;

pub(crate) const ANSWERS: &str = r#"
name = "there"
[[reply]]
when = { last_user_contains = "steps", results_since_user = 0 }
step = [
    { thinking = "Two things." },
    { text = "Looking." },
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "look", arguments = { at = "b" } } },
]
[[reply]]
when = { last_user_contains = "steps", results_since_user = 2 }
step = [{ call = { name = "look", arguments = { at = "c" } } }]
[[reply]]
when = { last_user_contains = "hang", results_since_user = 0 }
step = [{ call = { name = "hang", arguments = {} } }]
[[reply]]
when = { last_user_contains = "act", results_since_user = 0 }
step = [{ call = { name = "act", arguments = {} } }]
[[reply]]
when = { last_user_contains = "fail" }
step = [{ error = { kind = "invalid_request", message = "not so" } }]
[[reply]]
step = [{ text = "Done with {{last_user}}" }]
"#;

/// An orchestrator, for either side.
pub(crate) fn orchestrator(
    journal: Arc<dyn Journal>,
    runners: Vec<Arc<dyn Runner>>,
) -> Orchestrator {
    Orchestrator::new(RuntimeDeps { runners, ..runtime_deps(journal, ANSWERS) })
}

struct TestTaskFactory;

#[async_trait]
impl TaskFactory for TestTaskFactory {
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = request.model.unwrap_or_else(|| ModelRef::parse("scripted/there").unwrap());
        let agent = request.agent.unwrap_or_else(|| "default".to_owned());
        Ok(NewTask {
            system_prompt: request.system_prompt.unwrap_or_else(|| "There.".to_owned()),
            tools: request.tools,
            agents: request.agents.map_or(CallableAgents::Any, CallableAgents::Only),
            before: PriorHistory::Messages(request.history),
            limits: request.limits,
            output_schema: request.output_schema,
            ..NewTask::new(agent, model, request.message)
        })
    }

    fn agents(&self) -> Vec<AgentName> {
        Vec::new()
    }
}

/// A client of the peer with this address.
pub(crate) fn client(url: &str) -> Client {
    let endpoint = Endpoint::parse(url).unwrap();
    let timeouts = Timeouts::default();
    Client::new(ClientConfig { endpoint, token: TOKEN.into(), timeouts }).unwrap()
}

/// The peer, running.
pub(crate) struct PeerServer {
    pub(crate) address: SocketAddr,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<MemoryJournal>,
    running: RunningServer,
}

impl PeerServer {
    pub(crate) async fn new() -> Self {
        let address = "127.0.0.1:0".parse().unwrap();
        Self::again(Arc::new(MemoryJournal::new()), address).await
    }

    /// A peer with this journal at this address.
    pub(crate) async fn again(journal: Arc<MemoryJournal>, address: SocketAddr) -> Self {
        let orchestrator = orchestrator(Arc::clone(&journal) as Arc<dyn Journal>, Vec::new());
        orchestrator.recover().await.unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(TestTaskFactory),
            token: Token::new(TOKEN.into()).unwrap(),
            // A client of the proxy sends the proxy's address as host.
            hosts: vec!["127.0.0.1".to_owned()],
            limits: ServerLimits {
                heartbeat: Duration::from_millis(50),
                ..ServerLimits::default()
            },
        };
        let config = ServerConfig::new(deps, antiphon_http::interface(None));
        let running = RunningServer::start(address, config, Listeners::from).await;
        Self { address: running.address, orchestrator, journal, running }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the peer. Its journal stays.
    pub(crate) async fn end(self) -> (Arc<MemoryJournal>, SocketAddr) {
        self.running.stop().await;
        (self.journal, self.address)
    }

    /// Id of its only task.
    pub(crate) async fn task(&self) -> TaskId {
        let mut events = self.orchestrator.follow(None, Position(0));
        events.next().await.unwrap().task_id
    }

    /// Waits until its only task has an event of this type.
    pub(crate) async fn until(&self, kind: &str) {
        let mut events = self.orchestrator.follow(None, Position(0));
        while events.next().await.unwrap().body.event_type() != kind {}
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        read(&*self.journal, &self.task().await).await
    }
}
