//! A remote agent that answers as the test says, in JSON-RPC.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// An answer to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The result of JSON-RPC.
    Result(Value),
    /// An error of JSON-RPC.
    Error(i64),
    /// Events, and the end of the stream.
    Events(Vec<Value>),
    /// Events, and a stream that stays open.
    Open(Vec<Value>),
    /// A response as it is.
    Raw(u16, String),
    /// Events that never end.
    Endless(Value),
}

type Answers = dyn Fn(&Value, usize) -> Answer + Send + Sync;

struct Shared {
    card: Mutex<Answer>,
    answers: Box<Answers>,
    requests: Mutex<Vec<Value>>,
}

/// A remote agent of a test.
pub(crate) struct FakeAgent {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

/// A card with one interface, at the address of the agent.
pub(crate) fn card(url: &str, streaming: bool) -> Value {
    json!({
        "name": "fake", "description": "A fake.", "version": "1", "skills": [],
        "capabilities": { "streaming": streaming },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            { "url": format!("{url}/grpc"), "protocolBinding": "GRPC", "protocolVersion": "1.0" },
            { "url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
        ],
    })
}

/// A task of the agent.
pub(crate) fn task(state: &str) -> Value {
    json!({ "id": "t1", "contextId": "c1", "status": { "state": format!("TASK_STATE_{state}") } })
}

/// A message of the agent.
pub(crate) fn said(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_AGENT", "parts": [{ "text": text }] })
}

/// A task with a message in its status.
pub(crate) fn saying(state: &str, id: &str, text: &str) -> Value {
    let mut task = task(state);
    task["status"]["message"] = said(id, text);
    task
}

/// A completed task with this result.
pub(crate) fn completed(text: &str) -> Value {
    let mut task = task("COMPLETED");
    task["artifacts"] =
        json!([{ "artifactId": "a", "name": "result", "parts": [{ "text": text }] }]);
    task
}

pub(crate) fn status_event(task: &Value) -> Value {
    json!({ "statusUpdate": { "taskId": task["id"], "contextId": "c1", "status": task["status"] } })
}

pub(crate) fn chunk(text: &str, append: bool) -> Value {
    json!({ "artifactUpdate": {
        "taskId": "t1", "contextId": "c1", "append": append, "lastChunk": false,
        "artifact": { "artifactId": "a", "parts": [{ "text": text }] },
    }})
}

impl FakeAgent {
    /// An agent that streams. `answers` gets each request and the number of requests of its method before.
    pub(crate) async fn new(
        answers: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", answers).await
    }

    pub(crate) async fn at(
        address: &str,
        answers: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            card: Mutex::new(Answer::Raw(200, card(&url, true).to_string())),
            answers: Box::new(answers),
            requests: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, _serving: serving }
    }

    /// Answers requests for the card with this.
    pub(crate) fn with_card(self, status: u16, body: impl Into<String>) -> Self {
        *self.shared.card.lock().unwrap() = Answer::Raw(status, body.into());
        self
    }

    pub(crate) fn polled(self) -> Self {
        let text = card(&self.url, false).to_string();
        self.with_card(200, text)
    }

    /// The parameters of the requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let requests = self.shared.requests.lock().unwrap();
        let of_method = requests.iter().filter(|request| request["method"] == method);
        of_method.map(|request| request["params"].clone()).collect()
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    if method == Method::GET && uri.path() == "/.well-known/agent-card.json" {
        let card = shared.card.lock().unwrap().clone();
        return respond(card);
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let before = {
        let mut requests = shared.requests.lock().unwrap();
        let before = requests.iter().filter(|known| known["method"] == request["method"]).count();
        requests.push(request.clone());
        before
    };
    respond((shared.answers)(&request, before))
}

fn respond(answer: Answer) -> Response {
    let wrap = |result: Value| json!({ "jsonrpc": "2.0", "id": "1", "result": result }).to_string();
    let event = move |value: Value| {
        Ok::<_, std::convert::Infallible>(Bytes::from(format!("data: {}\n\n", wrap(value))))
    };
    let stream = |body: Body| {
        Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
    };
    let json = |status: u16, text: String| {
        let status = StatusCode::from_u16(status).unwrap();
        let response =
            Response::builder().status(status).header("content-type", "application/json");
        response.header("location", "http://127.0.0.1:1/").body(Body::from(text)).unwrap()
    };
    match answer {
        Answer::Result(value) => json(200, wrap(value)),
        Answer::Error(code) => {
            let error = json!({ "code": code, "message": "no" });
            json(200, json!({ "jsonrpc": "2.0", "id": "1", "error": error }).to_string())
        }
        Answer::Raw(status, text) => json(status, text),
        Answer::Events(values) => {
            stream(Body::from_stream(futures_util::stream::iter(values.into_iter().map(event))))
        }
        Answer::Open(values) => {
            let events = futures_util::stream::iter(values.into_iter().map(event));
            stream(Body::from_stream(events.chain(futures_util::stream::pending())))
        }
        Answer::Endless(value) => {
            stream(Body::from_stream(futures_util::stream::repeat(value).map(event)))
        }
    }
}
