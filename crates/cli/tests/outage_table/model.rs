//! The model of the table: it plays every agent, and is away or cut off when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use antiphon_model_server::{ModelServer, Part, Reply};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::State;
use crate::anthropic_wire::{bash, busy, call, cut_text, held_text, results, text};

/// A command that has one effect, and runs until the test ends it.
const COMMAND: &str = "echo once >> log; while [ ! -e go ]; do sleep 0.05; done";

/// A command that a person must allow.
const ASKED_COMMAND: &str = "touch asked; echo once >> log";

pub(crate) struct Model {
    pub(crate) server: ModelServer,
    pub(crate) failures: Arc<Failures>,
    _runtime: Runtime,
}

/// Answers that fail.
#[derive(Default)]
pub(crate) struct Failures {
    /// Whether every request is refused.
    pub(crate) away: AtomicBool,
    /// Number of answers that break off from now on.
    pub(crate) cut: AtomicUsize,
}

impl Model {
    pub(crate) fn new(state: State) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let failures = Arc::new(Failures::default());
        let shared = Arc::clone(&failures);
        let server = runtime.block_on(ModelServer::start(move |request, _| {
            if shared.away.load(Ordering::SeqCst) {
                return busy(503, None);
            }
            if takes_one(&shared.cut) {
                return cut_text("An answer that breaks off");
            }
            answer(state, &request.json())
        }));
        Self { server: server.unwrap(), failures, _runtime: runtime }
    }
}

fn takes_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// What the agent of the request says next.
fn answer(state: State, request: &Value) -> Reply {
    let system = request["system"].to_string();
    if system.contains("You are child.") {
        return held(text("The child's answer."));
    }
    if system.contains("You are helper.") {
        return text("I read it.");
    }
    if results(request) > 0 {
        return text("Done.");
    }
    match state {
        State::Idle | State::Thinking => held(text("Done.")),
        State::Streaming => held_text("Done."),
        State::ToolRunning | State::SandboxedToolRunning => bash("call_1", COMMAND),
        State::WaitingForApproval => bash("call_1", ASKED_COMMAND),
        State::Child => call("call_1", "call_agent", &json!({ "agent": "child", "prompt": "go" })),
        State::RemoteChild => {
            call("call_1", "call_agent", &json!({ "agent": "far", "prompt": "go" }))
        }
    }
}

/// The same, once the test releases it.
fn held(mut reply: Reply) -> Reply {
    reply.parts.insert(0, Part::Hold);
    reply
}
