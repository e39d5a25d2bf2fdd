//! A server with two agents, and a client that returns what it receives.

use std::sync::Arc;
use std::time::Duration;

use antiphon_a2a_api::{A2a, A2aConfig, ExposedAgents};
use antiphon_conformance::reference::HeldJournal;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{AgentName, ErrorCode, ErrorResponse, ModelRef};
use antiphon_interface_transport::{Listeners, ServerConfig, ServerDeps, ServerLimits, Token};
use antiphon_outbound::OutboundRules;
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps, two_keys};
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(15);

const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "act", tool_offered = "act", results_since_user = 0 }
step = [{ text = "I act." }, { call = { name = "act", arguments = {} } }]
[[reply]]
when = { last_user_contains = "which color", results_since_user = 0 }
step = [{ call = { name = "ask_user", arguments_json = '{"question":"Which color?","choices":["Red","Blue"],"free_text":false}' } }]
[[reply]]
when = { last_user_contains = "which color" }
step = [{ text = "{{last_result}}" }]
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "One moment" }, { stall = true }]
[[reply]]
when = { last_user_contains = "slow" }
step = [{ delay_ms = 200 }, { text = "At " }, { delay_ms = 50 }, { text = "last." }]
[[reply]]
when = { last_user_contains = "break" }
step = [{ error = { kind = "invalid_request", message = "it broke" } }]
[[reply]]
step = [{ text = "You said {{last_user}}" }]
"#;

struct Factory(Orchestrator);

#[async_trait]
impl TaskFactory for Factory {
    fn agents(&self) -> Vec<AgentName> {
        ["helper", "other"].map(|name| AgentName::parse(name).unwrap()).to_vec()
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = ModelRef::parse("scripted/test").unwrap();
        let task = NewTask::new(request.agent.unwrap_or_default(), model, request.message);
        let Some(session_id) = request.session_id else { return Ok(task) };
        let which = TaskSelector::Session(session_id.clone());
        let query = TaskQuery { which, limit: std::num::NonZeroUsize::MIN };
        let last = self.0.tasks(query).await.unwrap().remove(0);
        if !last.status.is_terminal() {
            let message = "its last task has not ended".to_owned();
            return Err(ErrorResponse { code: ErrorCode::Conflict, message, details: None });
        }
        let state = self.0.task(&last.task_id).await.unwrap();
        let before = PriorHistory::Messages(state.conversation.messages().to_vec());
        Ok(NewTask { session_id: Some(session_id), before, ..task })
    }
}

/// A server and its client.
pub(crate) struct World {
    pub(crate) server: RunningServer,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<HeldJournal>,
    /// The API keys of two persons.
    pub(crate) keys: [String; 2],
    pub(crate) a2a: A2a,
    pub(crate) folder: TempDir,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The `data` of its server-sent events.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert!(self.head.contains("text/event-stream"), "{self:?}");
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

/// A reply that is still being sent.
pub(crate) struct OpenReply {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl OpenReply {
    /// Waits for the first of its server-sent events.
    async fn first_event(&mut self) {
        let arriving = async {
            while !String::from_utf8_lossy(&self.bytes).contains("\ndata: ") {
                let read = self.socket.read_buf(&mut self.bytes).await.unwrap();
                assert_ne!(read, 0, "no event: {}", String::from_utf8_lossy(&self.bytes));
            }
        };
        tokio::time::timeout(PATIENCE, arriving).await.unwrap();
    }

    /// Waits for its end.
    async fn reply(mut self) -> Reply {
        let reading = self.socket.read_to_end(&mut self.bytes);
        tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
        let text = String::from_utf8(self.bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// The results of its events, when it has ended.
    pub(crate) async fn results(self) -> Vec<Value> {
        let events = self.reply().await.events();
        events.into_iter().map(|event| event["result"].clone()).collect()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(ExposedAgents::AllOnLoopback, &[]).await
    }

    pub(crate) async fn with(agents: ExposedAgents, push_hosts: &[&str]) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), agents, push_hosts).await
    }

    /// With the push configurations of this folder.
    pub(crate) async fn in_folder(
        folder: TempDir,
        agents: ExposedAgents,
        push_hosts: &[&str],
    ) -> Self {
        let journal = Arc::new(HeldJournal::new());
        let deps = runtime_deps(Arc::clone(&journal) as _, SCRIPT);
        let orchestrator = Orchestrator::new(deps);
        let push_hosts = OutboundRules::parse(push_hosts.iter().copied()).unwrap();
        let config = A2aConfig { agents, push_hosts, ..A2aConfig::new(folder.path()) };
        let a2a = A2a::new(config).unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(Factory(orchestrator.clone())),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: Vec::new(),
            limits: ServerLimits::default(),
        };
        let (ring, keys) = two_keys(folder.path());
        let server = ServerConfig { keys: Some(ring), ..ServerConfig::new(deps, a2a.interface()) };
        let server =
            RunningServer::start("127.0.0.1:0".parse().unwrap(), server, Listeners::from).await;
        Self { server, orchestrator, journal, keys, a2a, folder }
    }

    /// Sends a request as it is written.
    pub(crate) async fn raw(&self, text: &str) -> Reply {
        self.open(text).await.reply().await
    }

    async fn open(&self, text: &str) -> OpenReply {
        let mut socket = TcpStream::connect(self.server.address).await.unwrap();
        let host = format!("host: localhost:{}\r\n", self.server.address.port());
        let text = text.replacen("host: localhost\r\n", &host, 1);
        socket.write_all(text.as_bytes()).await.unwrap();
        OpenReply { socket, bytes: Vec::new() }
    }

    /// A request of HTTP+JSON with the key of another caller.
    pub(crate) async fn http_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        let text = request(method, path, "a2a-version: 1.0\r\n", body);
        self.raw(&text.replacen(TOKEN, key, 1)).await
    }

    /// A call of JSON-RPC with the key of another caller.
    pub(crate) async fn rpc_as(&self, key: &str, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.http_as(key, "POST", "/a2a/helper", Some(&body)).await.json()
    }

    /// Begins a call of JSON-RPC and does not read the answer.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> OpenReply {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.open(&request("POST", "/a2a/helper", "a2a-version: 1.0\r\n", Some(&body))).await
    }

    pub(crate) async fn http(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.raw(&request(method, path, "a2a-version: 1.0\r\n", body)).await
    }

    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let reply = self.http("POST", "/a2a/helper", Some(&body)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let reply = reply.json();
        assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &json!(7)), "{reply}");
        reply
    }

    pub(crate) async fn stream(&self, method: &str, params: Value) -> Vec<Value> {
        self.begun_stream(method, params).await.results().await
    }

    /// A stream whose first event has arrived.
    pub(crate) async fn begun_stream(&self, method: &str, params: Value) -> OpenReply {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let request = request("POST", "/a2a/helper", "a2a-version: 1.0\r\n", Some(&body));
        let mut reply = self.open(&request).await;
        reply.first_event().await;
        reply
    }

    /// Sends a text and returns the task.
    pub(crate) async fn task(&self, id: &str, text: &str) -> Value {
        let reply = self.rpc("SendMessage", message(id, text)).await;
        reply["result"]["task"].clone()
    }

    /// Creates a task that does not end.
    pub(crate) async fn stalling(&self, id: &str) -> Value {
        let mut params = message(id, "stall");
        params["configuration"] = json!({ "returnImmediately": true });
        self.rpc("SendMessage", params).await["result"]["task"].clone()
    }

    pub(crate) async fn ended(self) {
        self.a2a.shutdown().await;
        self.server.stop().await;
    }
}

pub(crate) fn request(method: &str, path: &str, more: &str, body: Option<&Value>) -> String {
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n{kind}{more}content-length: \
         {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

/// Code and reason of an error in JSON-RPC.
pub(crate) fn error(reply: &Value) -> (i64, String) {
    let info = &reply["error"]["data"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{reply}");
    assert!(reply["error"]["message"].is_string(), "{reply}");
    (reply["error"]["code"].as_i64().unwrap(), info["reason"].as_str().unwrap().to_owned())
}
