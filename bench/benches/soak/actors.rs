//! Those who use the server all at once. Each goes on until it is told to stop, comes back when the
//! server was killed, and asks again under the same name for what it has no answer to.

use std::time::Duration;

use antiphon_bench::{Address, Connection, Error, Frames};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ledger::Ledger;

/// How many there are of each.
const CAST: [(Part, usize); 7] = [
    (Part::Chats, 3),
    (Part::Streams, 2),
    (Part::Tasks, 3),
    (Part::Sends, 2),
    (Part::Watches, 8),
    (Part::Leaves, 3),
    (Part::MeetsFaults, 2),
];

/// How long an actor waits between two things.
const PAUSE: Duration = Duration::from_millis(5);

/// How long it waits before it comes back.
const COME_BACK: Duration = Duration::from_millis(50);

/// How long anything may take. A server that is started again needs some of it.
const PATIENCE: Duration = Duration::from_secs(30);

const CHAT: &str = "/v1/chat/completions";

/// What an actor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Chats,
    Streams,
    Tasks,
    Sends,
    Watches,
    Leaves,
    MeetsFaults,
}

/// Everybody.
pub(crate) fn all(
    address: &watch::Receiver<Address>,
    ledger: &Ledger,
    stop: &CancellationToken,
) -> JoinSet<Result<(), Error>> {
    let mut actors = JoinSet::new();
    for (part, count) in CAST {
        for number in 0..count {
            let (address, ledger, stop) = (address.clone(), ledger.clone(), stop.clone());
            let name = format!("{part:?}-{number}");
            let actor = Actor { part, name, address, ledger, connection: None };
            actors.spawn(actor.act(stop));
        }
    }
    actors
}

struct Actor {
    part: Part,
    name: String,
    address: watch::Receiver<Address>,
    ledger: Ledger,
    connection: Option<Connection>,
}

impl Actor {
    async fn act(mut self, stop: CancellationToken) -> Result<(), Error> {
        let mut number = 0;
        while !stop.is_cancelled() {
            number += 1;
            let key = format!("{}-{number}", self.name);
            let done = async {
                while let Err(error) = self.play(number, &key).await {
                    if error.is::<Wrong>() {
                        return Err(error);
                    }
                    // The server was killed, or is about to listen again.
                    self.ledger.count("connections that broke off");
                    self.connection = None;
                    tokio::time::sleep(COME_BACK).await;
                }
                Ok(())
            };
            let done = tokio::time::timeout(PATIENCE, done);
            done.await.map_err(|_| format!("`{key}` got no answer"))??;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn play(&mut self, number: usize, key: &str) -> Result<(), Error> {
        match self.part {
            Part::Chats => self.chat(key).await,
            Part::Streams => self.stream(key).await,
            Part::Tasks => self.task(key).await,
            Part::Sends => self.send(key).await,
            Part::Watches => self.watch(number).await,
            Part::Leaves => self.leave(number).await,
            Part::MeetsFaults => self.meet_faults(number, key).await,
        }
    }

    /// The connection that is open, or another one to where the server is now.
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
        let (status, answer) = self.post(key, CHAT, asked("instant", "Look at it.", false)).await?;
        if closing(status, &answer) {
            return Err("the server ends".into());
        }
        let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        if !said.starts_with("There is nothing wrong") {
            return Err(Wrong(format!("{status} {answer}")).into());
        }
        self.ledger.count("chat, whole");
        Ok(())
    }

    async fn stream(&mut self, key: &str) -> Result<(), Error> {
        let connection = self.connection().await?;
        let body = asked("instant", "Look at it.", true).to_string().into();
        let response = connection.ask_as(Some(key), Method::POST, CHAT, body).await?;
        let mut frames = Frames::new(response.into_body());
        let mut done = false;
        while let Some(frame) = frames.next().await? {
            done |= frame.ends_with(b"[DONE]");
        }
        if !done {
            return Err("an answer broke off".into());
        }
        self.ledger.count("chat, streamed");
        Ok(())
    }

    async fn task(&mut self, key: &str) -> Result<(), Error> {
        let task = json!({ "model": "scripted/worker", "message": "Look at the note." });
        let (status, accepted) = self.post(key, "/v1/tasks", task).await?;
        let Some(task_id) = accepted["task_id"].as_str().filter(|_| status.is_success()) else {
            return Err(Wrong(format!("{status} {accepted}")).into());
        };
        self.ledger.promise(task_id.to_owned());
        let path = format!("/v1/tasks/{task_id}/rest?wait_s=30");
        self.ledger.count("tasks with tools");
        // How it ended is looked at when everything is over.
        drop(self.connection().await?.get(&path).await);
        Ok(())
    }

    async fn send(&mut self, key: &str) -> Result<(), Error> {
        let message = json!({ "message": "The build is red.", "from": "ci" });
        let (status, receipt) = self.post(key, "/v1/agents/listener/inbox", message).await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            tokio::time::sleep(COME_BACK).await;
            self.ledger.count("inbox, full for a moment");
            return Ok(());
        }
        if !status.is_success() {
            return Err(Wrong(format!("{status} {receipt}")).into());
        }
        self.ledger.count("inbox, accepted");
        Ok(())
    }

    /// Watches for a while, or to the end.
    async fn watch(&mut self, number: usize) -> Result<(), Error> {
        let Some(task_id) = self.ledger.recent(number * 7) else { return Ok(()) };
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
                return Err(Wrong(format!("event {seen} of {task_id} is missing")).into());
            }
        }
        if seen == enough {
            self.connection = None;
        }
        self.ledger.count("watchers that came and went");
        Ok(())
    }

    /// Hangs up in the middle of an answer.
    async fn leave(&mut self, number: usize) -> Result<(), Error> {
        let connection = self.connection().await?;
        let body = asked("slow", "Count.", true).to_string().into();
        let response = connection.ask(Method::POST, CHAT, body).await?;
        let mut frames = Frames::new(response.into_body());
        for _ in 0..number % 5 {
            frames.next().await?;
        }
        self.connection = None;
        self.ledger.count("clients that hung up");
        Ok(())
    }

    /// Asks a model that fails at first, or for good.
    async fn meet_faults(&mut self, number: usize, key: &str) -> Result<(), Error> {
        let never = number.is_multiple_of(4);
        let word = if never { "never" } else { key };
        let (status, answer) = self.post(key, CHAT, asked("flaky", word, false)).await?;
        // Five failures in a row, and the provider is left alone for a while.
        let expected = if never { !status.is_success() } else { true };
        if !expected {
            return Err(Wrong(format!("{status} {answer}")).into());
        }
        self.ledger.count(if status.is_success() {
            "faults that passed"
        } else {
            "faults that were told"
        });
        Ok(())
    }
}

fn asked(script: &str, text: &str, stream: bool) -> Value {
    let said = json!([{ "role": "user", "content": text }]);
    json!({ "model": format!("scripted/{script}"), "messages": said, "stream": stream })
}

/// Whether the server says that it ends: ask the next one.
fn closing(status: StatusCode, answer: &Value) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE && answer["error"]["code"] == "closing"
}

/// Something that no kill explains.
#[derive(Debug)]
struct Wrong(String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "that should not be: {}", self.0)
    }
}

impl std::error::Error for Wrong {}
