//! JSON-RPC 2.0 in lines: what goes to the editor, and the answers to requests that were sent to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::schema::{Error, SessionNotification, SessionUpdate};
use crate::v2;
use crate::version::Version;

/// Lines that wait to be written. A turn waits when the editor does not read them.
pub(crate) const QUEUE_LINES_MAX: usize = 256;

/// A line of the editor.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming {
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Why the editor did not answer a request.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It refused it, or its answer cannot be read.
    Refused(String),
    /// The connection ends.
    Gone,
}

/// The editor.
pub(crate) struct Editor {
    lines: mpsc::Sender<String>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    next_id: AtomicU64,
    version: OnceLock<Version>,
}

impl Editor {
    pub(crate) fn new(lines: mpsc::Sender<String>) -> Self {
        let (waiting, next_id) = (Mutex::default(), AtomicU64::new(1));
        Self { lines, waiting, next_id, version: OnceLock::new() }
    }

    /// The version that is spoken: the stable one until `initialize` has chosen one.
    pub(crate) fn version(&self) -> Version {
        self.version.get().copied().unwrap_or(Version::V1)
    }

    /// Chooses the version, unless one is chosen already.
    pub(crate) fn choose_version(&self, version: Version) {
        let _ = self.version.set(version);
    }

    /// Sends a notification about a session.
    pub(crate) async fn update(&self, session_id: &str, update: SessionUpdate) {
        match self.version() {
            Version::V1 => {
                let params = SessionNotification::new(session_id.to_owned(), update);
                self.notify("session/update", &params).await;
            }
            Version::V2 => {
                if let Some(update) = v2::update(&update) {
                    self.update_v2(session_id, update).await;
                }
            }
        }
    }

    /// Sends a notification about a session in the shape of version 2.
    pub(crate) async fn update_v2(&self, session_id: &str, update: Value) {
        let params = json!({ "sessionId": session_id, "update": update });
        self.notify("session/update", &params).await;
    }

    pub(crate) async fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, id: &Value, answer: Result<Value, Error>) {
        let line = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        self.send(&line).await;
    }

    /// Sends a request and waits for its answer, however long the person takes. A dropped wait informs the editor
    /// that no answer is needed any longer.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, Unanswered> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id, sender);
        let _withdrawn = Withdraw { editor: self, id };
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&line).await;
        match answer.await {
            Ok(Ok(result)) => serde_json::from_value(result)
                .map_err(|error| Unanswered::Refused(error.to_string())),
            Ok(Err(error)) => Err(Unanswered::Refused(error.to_string())),
            Err(_) => Err(Unanswered::Gone),
        }
    }

    /// Passes an answer of the editor on. An answer to nothing is dropped.
    pub(crate) fn answered(&self, incoming: Incoming) {
        let id = incoming.id.as_ref().and_then(Value::as_u64);
        let Some(sender) = id.and_then(|id| self.waiting().remove(&id)) else { return };
        let answer = incoming.error.map_or(Ok(incoming.result.unwrap_or_default()), Err);
        // The request may have been withdrawn just now.
        let _ = sender.send(answer);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, Value>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, message: &Value) {
        // The writer is gone when the editor is: its input ends, too.
        let _ = self.lines.send(message.to_string()).await;
    }
}

/// Tells the editor that a request needs no answer any longer, unless it has answered.
struct Withdraw<'a> {
    editor: &'a Editor,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        if self.editor.waiting().remove(&self.id).is_none() {
            return;
        }
        let method = "$/cancel_request";
        let line =
            json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": self.id } });
        // Without room in the queue the editor keeps the question, and its answer is dropped.
        let _ = self.editor.lines.try_send(line.to_string());
    }
}
