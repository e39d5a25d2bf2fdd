//! `/mcp` of a server, on a journal in memory whose appends can be held. What its clients see of the program is tested with
//! the program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::HeldJournal;
use antiphon_core::port::{ApprovalSelector, Clock as _, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{AgentName, ErrorResponse, ModelRef, TaskStatus, UserMessage};
use antiphon_interface_transport::{
    ExposedAgents, Listeners, ServerConfig, ServerDeps, ServerLimits, Token,
};
use antiphon_mcp_server::McpServer;
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{NewTask, Orchestrator};
use antiphon_test_server::{RunningServer, TOKEN, runtime_deps};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "act", results_since_user = 0 }
step = [{ call = { name = "act", arguments = {} } }]
[[reply]]
step = [{ text = "You said {{last_user}}" }]
"#;

struct Factory;

#[async_trait]
impl TaskFactory for Factory {
    fn agents(&self) -> Vec<AgentName> {
        vec![AgentName::parse("helper").unwrap()]
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = ModelRef::parse("scripted/test").unwrap();
        Ok(NewTask::new(request.agent.unwrap_or_default(), model, request.message))
    }
}

struct World {
    server: RunningServer,
    orchestrator: Orchestrator,
    journal: Arc<HeldJournal>,
}

impl World {
    async fn new() -> Self {
        let journal = Arc::new(HeldJournal::new());
        let orchestrator = Orchestrator::new(runtime_deps(Arc::clone(&journal) as _, SCRIPT));
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(Factory),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: Vec::new(),
            limits: ServerLimits::default(),
        };
        let mcp = McpServer::new(ExposedAgents::AllOnLoopback);
        let config = ServerConfig::new(deps, mcp.interface());
        let address = "127.0.0.1:0".parse().unwrap();
        let server = RunningServer::start(address, config, Listeners::from).await;
        Self { server, orchestrator, journal }
    }

    /// Sends a call of a tool and does not read the answer.
    async fn begin(&self, tool: &str, arguments: &Value) -> TcpStream {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = body.to_string();
        let head = format!(
            "POST /mcp HTTP/1.0\r\nhost: localhost:{}\r\nauthorization: Bearer {TOKEN}\r\naccept: \
             application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n\
             content-length: {}\r\n\r\n{body}",
            self.server.address.port(),
            body.len()
        );
        let mut socket = TcpStream::connect(self.server.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        socket
    }

    async fn call(&self, tool: &str, arguments: &Value) -> String {
        let mut socket = self.begin(tool, arguments).await;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    async fn only_task(&self) -> antiphon_core::TaskId {
        loop {
            let query = TaskQuery { which: TaskSelector::All, limit: 10.try_into().unwrap() };
            if let Some(task) = self.orchestrator.tasks(query).await.unwrap().pop() {
                return task.task_id;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_task_goes_on_when_its_client_disconnects_while_it_is_created() {
    let world = World::new().await;
    world.journal.hold();
    let call = world.begin("helper", &json!({ "message": "hello" })).await;
    world.journal.until_held().await;
    drop(call);
    // The server learns of the disconnect before the journal answers.
    tokio::time::sleep(Duration::from_millis(200)).await;
    world.journal.release();
    let task = world.only_task().await;
    let ended = world.orchestrator.wait(&task).await.unwrap();
    assert_eq!(ended.status, TaskStatus::Completed);
    world.server.stop().await;
}

/// More approvals of other tasks than one list had before, which are not read.
#[tokio::test]
async fn a_call_is_told_of_its_approval_behind_many_of_other_tasks() {
    let world = World::new().await;
    for _ in 0..210 {
        let said = UserMessage::text("act", SystemClock.now());
        let model = ModelRef::parse("scripted/test").unwrap();
        world.orchestrator.invoke(NewTask::new("helper", model, said)).await.unwrap();
    }
    while world.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap().len() < 210 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.journal.take_listed_approvals();
    let answer = world.call("helper", &json!({ "message": "act" })).await;
    assert!(answer.contains("antiphon approvals allow"), "{answer}");
    let all = world.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
    let own = all.last().unwrap();
    let listed = world.journal.take_listed_approvals() - all.len();
    assert!(listed <= 4, "only its own, a few times: {listed}");
    let wait = json!({ "taskId": own.task_id, "timeoutSeconds": 5 });
    let answer = world.call("task_wait", &wait).await;
    assert!(answer.contains(own.approval_id.as_str()), "{answer}");
    let listed = world.journal.take_listed_approvals();
    assert!(listed <= 4, "only its own, a few times: {listed}");
    world.server.stop().await;
}
