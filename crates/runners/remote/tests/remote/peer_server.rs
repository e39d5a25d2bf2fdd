//! The peer: an orchestrator with a scripted model, harmless tools, and an HTTP server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Gate, GateRequest, Journal, RandomIds, Rule, Runner, SystemClock, ToolContext, Verdict,
};
use antiphon_core::{
    AgentName, CallableAgents, Effect, ErrorResponse, Event, ModelRef, Position, PriceTable,
    Provider, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_interface_transport::{Limits, ServerConfig, ServerDeps, Token, serve};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{Models, NewTask, Orchestrator, PriorHistory, RuntimeDeps, Settings};
use antiphon_scripted::{Script, ScriptedProvider};
use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::local::read;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const ANSWERS: &str = r#"
name = "there"
[[reply]]
when = { last_user_contains = "laps", results_since_user = 0 }
step = [
    { thinking = "Two things." },
    { text = "Looking." },
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "look", arguments = { at = "b" } } },
]
[[reply]]
when = { last_user_contains = "laps", results_since_user = 2 }
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

pub(crate) struct Scripted;

impl Models for Scripted {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let script = Script::parse(ANSWERS).map_err(|error| error.to_string())?;
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
        vec![tool("look"), tool("act"), tool("hang")]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        ["look", "act", "hang"].contains(&tool).then_some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if tool == "hang" {
            context.cancel.await;
            return Err(ToolError::Canceled);
        }
        Ok(ToolResult::text(format!("{tool} {arguments}: done")))
    }
}

/// An orchestrator, for either side.
pub(crate) fn orchestrator(
    journal: Arc<dyn Journal>,
    runners: Vec<Arc<dyn Runner>>,
) -> Orchestrator {
    Orchestrator::new(RuntimeDeps {
        journal,
        models: Arc::new(Scripted),
        tools: Arc::new(TestTools),
        gate: Arc::new(AskBeforeAct),
        agents: None,
        runners,
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: Settings::default(),
    })
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

/// The peer, running.
pub(crate) struct PeerServer {
    pub(crate) address: SocketAddr,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<MemoryJournal>,
    stop: oneshot::Sender<()>,
    serving: JoinSet<()>,
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
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(TestTaskFactory),
            token: Token::new(TOKEN.into()).unwrap(),
            // A client of the proxy sends the proxy's address as host.
            hosts: vec!["127.0.0.1".to_owned()],
            limits: Limits { heartbeat: Duration::from_millis(50), ..Limits::default() },
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let stopped = async { drop(stopped.await) };
            let config = ServerConfig::new(deps, antiphon_http::interface(None));
            serve(listener, config, stopped).await.unwrap();
        });
        Self { address, orchestrator, journal, stop, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the peer. Its journal stays.
    pub(crate) async fn end(mut self) -> (Arc<MemoryJournal>, SocketAddr) {
        drop(self.stop);
        self.serving.join_next().await.unwrap().unwrap();
        self.orchestrator.shutdown(Duration::from_secs(5)).await;
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
