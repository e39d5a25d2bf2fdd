//! Clients that send the next request as soon as they have a response.

use std::time::{Duration, Instant};

use antiphon_bench::{Address, Connection, Error, Frames, Times};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SYSTEM: &str = "You are a reviewer. Be short.";
const QUESTION: &str = "Look at the last change. What is wrong with it?";

/// The API that requests are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
}

impl Api {
    pub(crate) const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    fn body(self, model: &str, stream: bool) -> Value {
        let said = json!({ "role": "user", "content": QUESTION });
        match self {
            Self::Chat => json!({
                "model": model, "stream": stream,
                "messages": [{ "role": "system", "content": SYSTEM }, said],
            }),
            Self::Responses => json!({
                "model": model, "stream": stream, "instructions": SYSTEM, "input": [said],
            }),
            Self::Messages => json!({
                "model": model, "stream": stream, "system": SYSTEM, "messages": [said],
                "max_tokens": 1000,
            }),
        }
    }

    /// Whether an event has text of the answer.
    fn has_text(self, frame: &[u8]) -> bool {
        match self {
            Self::Chat => {
                let content = memmem::find(frame, b"\"content\":\"");
                content.is_some_and(|at| frame.get(at + 11).is_some_and(|byte| *byte != b'"'))
            }
            Self::Responses => memmem::find(frame, b"response.output_text.delta").is_some(),
            Self::Messages => memmem::find(frame, b"text_delta").is_some(),
        }
    }

    /// Whether an event is the last one of a whole answer.
    fn is_end(self, frame: &[u8]) -> bool {
        match self {
            Self::Chat => frame.ends_with(b"[DONE]"),
            Self::Responses => memmem::find(frame, b"event: response.completed").is_some(),
            Self::Messages => memmem::find(frame, b"event: message_stop").is_some(),
        }
    }
}

/// The request and its server.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    api: Api,
    address: Address,
    body: Bytes,
    stream: bool,
}

/// Response times.
#[derive(Debug, Default)]
pub(crate) struct ResponseTimes {
    /// Until the first text; empty for responses without streaming.
    pub(crate) first: Times,
    pub(crate) end: Times,
}

impl ResponseTimes {
    pub(crate) fn add(&mut self, more: Self) {
        self.first.extend(more.first);
        self.end.extend(more.end);
    }
}

impl Load {
    pub(crate) fn new(api: Api, address: Address, model: &str, stream: bool) -> Self {
        let body = api.body(model, stream).to_string().into();
        Self { api, address, body, stream }
    }

    /// Runs this many clients for this long.
    pub(crate) async fn ask(
        &self,
        at_once: usize,
        how_long: Duration,
    ) -> Result<ResponseTimes, Error> {
        let mut clients = JoinSet::new();
        let mut connections = Vec::new();
        for _ in 0..at_once {
            connections.push(Connection::open(&self.address).await?);
        }
        let until = Instant::now() + how_long;
        for connection in connections {
            let asking = self.clone();
            clients.spawn(async move { asking.ask_until(connection, until).await });
        }
        let mut times = ResponseTimes::default();
        while let Some(more) = clients.join_next().await {
            times.add(more??);
        }
        Ok(times)
    }

    async fn ask_until(
        &self,
        mut connection: Connection,
        until: Instant,
    ) -> Result<ResponseTimes, Error> {
        let mut times = ResponseTimes::default();
        while Instant::now() < until {
            let started = Instant::now();
            let response = connection.ask(Method::POST, self.api.path(), self.body.clone()).await?;
            if !response.status().is_success() {
                let messages = response.into_body().collect().await?.to_bytes();
                return Err(String::from_utf8_lossy(&messages).into_owned().into());
            }
            if self.stream {
                let mut frames = Frames::new(response.into_body());
                let (mut first, mut done) = (None, false);
                while let Some(frame) = frames.next().await? {
                    if first.is_none() && self.api.has_text(&frame) {
                        first = Some(started.elapsed());
                    }
                    done |= self.api.is_end(&frame);
                }
                times.first.push(first.filter(|_| done).ok_or("an answer broke off")?);
            } else {
                let body = response.into_body().collect().await?.to_bytes();
                if memmem::find(&body, b"every test passes").is_none() {
                    return Err("that is not the answer".into());
                }
            }
            times.end.push(started.elapsed());
        }
        Ok(times)
    }
}
