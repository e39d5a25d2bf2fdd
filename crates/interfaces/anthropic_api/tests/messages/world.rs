//! A server with an agent and a model, and a client that returns what it receives.

use std::sync::Arc;

use antiphon_conformance::reference::HeldJournal;
use antiphon_core::{AgentName, ErrorResponse, ModelRef};
use antiphon_interface_transport::{
    ExposedAgents, Listeners, ServerConfig, ServerDeps, ServerLimits, Token,
};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps, two_keys};
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const MESSAGES: &str = "/v1/messages";

const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "slow" }
step = [{ delay_ms = 300 }, { text = "At last." }]
[[reply]]
step = [{ text = "You said {{last_user}}" }]
"#;

struct Factory;

#[async_trait]
impl TaskFactory for Factory {
    fn agents(&self) -> Vec<AgentName> {
        vec![AgentName::parse("helper").unwrap()]
    }

    fn models(&self) -> Vec<ModelRef> {
        vec![ModelRef::parse("scripted/test").unwrap()]
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = ModelRef::parse("scripted/test").unwrap();
        let task = NewTask::new(request.agent.unwrap_or_default(), model, request.message);
        Ok(NewTask {
            external_tools: request.external_tools,
            before: PriorHistory::Messages(request.history),
            limits: request.limits,
            ..task
        })
    }
}

pub(crate) struct World {
    pub(crate) server: RunningServer,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<HeldJournal>,
    /// The API keys of two persons.
    pub(crate) keys: [String; 2],
    _folder: TempDir,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The type of an error in Anthropic's shape.
    pub(crate) fn error(&self) -> String {
        let body = self.json();
        assert_eq!(body["type"], "error", "{self:?}");
        assert!(body["error"]["message"].is_string(), "{self:?}");
        body["error"]["type"].as_str().unwrap().to_owned()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(ExposedAgents::AllOnLoopback, ServerLimits::default()).await
    }

    pub(crate) async fn with(chat_agents: ExposedAgents, limits: ServerLimits) -> Self {
        let journal = Arc::new(HeldJournal::new());
        let orchestrator = Orchestrator::new(runtime_deps(Arc::clone(&journal) as _, SCRIPT));
        let folder = tempfile::tempdir().unwrap();
        let (ring, keys) = two_keys(folder.path());
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(Factory),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: Vec::new(),
            limits,
        };
        let config = ServerConfig::new(deps, antiphon_anthropic_api::interface());
        let config = ServerConfig { keys: Some(ring), chat_agents, ..config };
        let address = "127.0.0.1:0".parse().unwrap();
        let server = RunningServer::start(address, config, Listeners::from).await;
        Self { server, orchestrator, journal, keys, _folder: folder }
    }

    /// Sends a request and does not read the answer.
    pub(crate) async fn begin(&self, text: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.server.address).await.unwrap();
        let host = format!("host: localhost:{}\r\n", self.server.address.port());
        let text = text.replacen("host: localhost\r\n", &host, 1);
        // A server that turns a request away may reset the rest of it.
        let _ = socket.write_all(text.as_bytes()).await;
        socket
    }

    pub(crate) async fn say(&self, text: &str) -> Reply {
        let mut socket = self.begin(text).await;
        let mut bytes = Vec::new();
        let _ = socket.read_to_end(&mut bytes).await;
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, body: body.to_owned() }
    }

    pub(crate) async fn ended(self) {
        self.server.stop().await;
    }
}

/// A request with the owner's token, and further lines of its head.
pub(crate) fn request(more: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {MESSAGES} HTTP/1.0\r\nhost: localhost\r\nx-api-key: {TOKEN}\r\ncontent-type: \
         application/json\r\nanthropic-version: 2023-06-01\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A request for a message with this content of its only user message.
pub(crate) fn message(content: &Value) -> Value {
    json!({
        "model": "scripted/test", "max_tokens": 100,
        "messages": [{ "role": "user", "content": content }],
    })
}
