//! Concurrent clients of the server. Each continues until it is stopped, reconnects after the
//! server was killed, and repeats unanswered requests with the same idempotency key.

use std::time::Duration;

use antiphon_bench::{Address, Connection, Error, Frames};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accepted_tasks::AcceptedTasks;

/// Number of clients of each kind.
const ROLES: [(Role, usize); 7] = [
    (Role::Chats, 3),
    (Role::Streams, 2),
    (Role::Tasks, 3),
    (Role::Sends, 2),
    (Role::Watches, 8),
    (Role::Leaves, 3),
    (Role::MeetsFaults, 2),
];

/// Pause of a client between two operations.
const PAUSE: Duration = Duration::from_millis(5);

/// Pause before a reconnect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Longest duration of an operation, including a restart of the server.
const OPERATION_MAX: Duration = Duration::from_secs(30);

const CHAT: &str = "/v1/chat/completions";

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Chats,
    Streams,
    Tasks,
    Sends,
    Watches,
    Leaves,
    MeetsFaults,
}

/// All clients.
pub(crate) fn all(
    address: &watch::Receiver<Address>,
    accepted: &AcceptedTasks,
    stop: &CancellationToken,
) -> JoinSet<Result<(), Error>> {
    let mut actors = JoinSet::new();
    for (part, count) in ROLES {
        for number in 0..count {
            let (address, accepted, stop) = (address.clone(), accepted.clone(), stop.clone());
            let name = format!("{part:?}-{number}");
            let actor = Client { part, name, address, accepted, connection: None };
            actors.spawn(actor.act(stop));
        }
    }
    actors
}

struct Client {
    part: Role,
    name: String,
    address: watch::Receiver<Address>,
    accepted: AcceptedTasks,
    connection: Option<Connection>,
}

impl Client {
    async fn act(mut self, stop: CancellationToken) -> Result<(), Error> {
        let mut number = 0;
        while !stop.is_cancelled() {
            number += 1;
            let key = format!("{}-{number}", self.name);
            let done = async {
                while let Err(error) = self.play(number, &key).await {
                    if error.is::<UnexpectedFailure>() {
                        return Err(error);
                    }
                    // The server was killed, or is about to listen again.
                    self.accepted.count("connections that broke off");
                    self.connection = None;
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                }
                Ok(())
            };
            let done = tokio::time::timeout(OPERATION_MAX, done);
            done.await.map_err(|_| format!("`{key}` got no answer"))??;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn play(&mut self, number: usize, key: &str) -> Result<(), Error> {
        match self.part {
            Role::Chats => self.chat(key).await,
            Role::Streams => self.stream(key).await,
            Role::Tasks => self.task(key).await,
            Role::Sends => self.send(key).await,
            Role::Watches => self.watch(number).await,
            Role::Leaves => self.leave(number).await,
            Role::MeetsFaults => self.meet_faults(number, key).await,
        }
    }

    /// The open connection, or a new one to the current address of the server.
    async fn connection(&mut self) -> Result<&mut Connection, Error> {
        if self.connection.is_none() {
            let address = self.address.borrow_and_update().clone();
            self.connection = Some(Connection::open(&address).await?);
        }
        self.connection.as_mut().ok_or_else(|| "there is no connection".into())
    }

    async fn post(
        &mut self,
        key: &str,
        path: &str,
        body: Value,
    ) -> Result<(StatusCode, Value), Error> {
        let connection = self.connection().await?;
        let body = body.to_string().into();
        let response = connection.ask_as(Some(key), Method::POST, path, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body)?))
    }

    async fn chat(&mut self, key: &str) -> Result<(), Error> {
        let (status, answer) =
            self.post(key, CHAT, chat_request("instant", "Look at it.", false)).await?;
        if closing(status, &answer) {
            return Err("the server ends".into());
        }
        let content = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        if !content.starts_with("There is nothing wrong") {
            return Err(UnexpectedFailure(format!("{status} {answer}")).into());
        }
        self.accepted.count("chat, whole");
        Ok(())
    }

    async fn stream(&mut self, key: &str) -> Result<(), Error> {
        let connection = self.connection().await?;
        let body = chat_request("instant", "Look at it.", true).to_string().into();
        let response = connection.ask_as(Some(key), Method::POST, CHAT, body).await?;
        let mut frames = Frames::new(response.into_body());
        let mut done = false;
        while let Some(frame) = frames.next().await? {
            done |= frame.ends_with(b"[DONE]");
        }
        if !done {
            return Err("an answer broke off".into());
        }
        self.accepted.count("chat, streamed");
        Ok(())
    }

    async fn task(&mut self, key: &str) -> Result<(), Error> {
        let task = json!({ "model": "scripted/worker", "message": "Look at the note." });
        let (status, accepted) = self.post(key, "/v1/tasks", task).await?;
        let Some(task_id) = accepted["task_id"].as_str().filter(|_| status.is_success()) else {
            return Err(UnexpectedFailure(format!("{status} {accepted}")).into());
        };
        self.accepted.promise(task_id.to_owned());
        let path = format!("/v1/tasks/{task_id}/rest?wait_s=30");
        self.accepted.count("tasks with tools");
        // Its result is checked at the end.
        drop(self.connection().await?.get(&path).await);
        Ok(())
    }

    async fn send(&mut self, key: &str) -> Result<(), Error> {
        let message = json!({ "message": "The build is red.", "from": "ci" });
        let (status, receipt) = self.post(key, "/v1/agents/listener/inbox", message).await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            tokio::time::sleep(RECONNECT_PAUSE).await;
            self.accepted.count("inbox, full for a moment");
            return Ok(());
        }
        if !status.is_success() {
            return Err(UnexpectedFailure(format!("{status} {receipt}")).into());
        }
        self.accepted.count("inbox, accepted");
        Ok(())
    }

    /// Watches for a while, or to the end.
    async fn watch(&mut self, number: usize) -> Result<(), Error> {
        let Some(task_id) = self.accepted.recent(number * 7) else { return Ok(()) };
        let path = format!("/v1/tasks/{task_id}/events");
        let response = self.connection().await?.ask(Method::GET, &path, Bytes::new()).await?;
        let mut frames = Frames::new(response.into_body());
        let enough = if number.is_multiple_of(2) { 5 } else { usize::MAX };
        let mut seen = 0;
        while seen < enough
            && let Some(frame) = frames.next().await?
        {
            let Some(id) = Frames::field(&frame, "id") else { continue };
            seen += 1;
            if id != seen.to_string().as_bytes() {
                return Err(
                    UnexpectedFailure(format!("event {seen} of {task_id} is missing")).into()
                );
            }
        }
        if seen == enough {
            self.connection = None;
        }
        self.accepted.count("watchers that came and went");
        Ok(())
    }

    /// Disconnects in the middle of an answer.
    async fn leave(&mut self, number: usize) -> Result<(), Error> {
        let connection = self.connection().await?;
        let body = chat_request("slow", "Count.", true).to_string().into();
        let response = connection.ask(Method::POST, CHAT, body).await?;
        let mut frames = Frames::new(response.into_body());
        for _ in 0..number % 5 {
            frames.next().await?;
        }
        self.connection = None;
        self.accepted.count("clients that hung up");
        Ok(())
    }

    /// Calls a model that fails at first, or always.
    async fn meet_faults(&mut self, number: usize, key: &str) -> Result<(), Error> {
        let never = number.is_multiple_of(4);
        let word = if never { "never" } else { key };
        let (status, answer) = self.post(key, CHAT, chat_request("flaky", word, false)).await?;
        // Five failures in a row open the provider's breaker for a while.
        let expected = if never { !status.is_success() } else { true };
        if !expected {
            return Err(UnexpectedFailure(format!("{status} {answer}")).into());
        }
        self.accepted.count(if status.is_success() {
            "faults that passed"
        } else {
            "faults that were told"
        });
        Ok(())
    }
}

fn chat_request(script: &str, text: &str, stream: bool) -> Value {
    let content = json!([{ "role": "user", "content": text }]);
    json!({ "model": format!("scripted/{script}"), "messages": content, "stream": stream })
}

/// Whether the server reports that it is shutting down: retry with the next one.
fn closing(status: StatusCode, answer: &Value) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE && answer["error"]["code"] == "closing"
}

/// A failure that no kill explains.
#[derive(Debug)]
struct UnexpectedFailure(String);

impl std::fmt::Display for UnexpectedFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "that should not be: {}", self.0)
    }
}

impl std::error::Error for UnexpectedFailure {}
