//! Clients that send the next request as soon as they have a response.

use std::time::{Duration, Instant};

use antiphon_bench::{Address, Connection, Error, Frames, Times};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use memchr::memmem;
use serde_json::json;
use tokio::task::JoinSet;

const PATH: &str = "/v1/chat/completions";

/// The request and its server.
#[derive(Debug, Clone)]
pub(crate) struct Load {
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
    pub(crate) fn new(address: Address, model: &str, stream: bool) -> Self {
        let messages = json!([
            { "role": "system", "content": "You are a reviewer. Be short." },
            { "role": "user", "content": "Look at the last change. What is wrong with it?" },
        ]);
        let body = json!({ "model": model, "messages": messages, "stream": stream });
        Self { address, body: body.to_string().into(), stream }
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
            let response = connection.ask(Method::POST, PATH, self.body.clone()).await?;
            if !response.status().is_success() {
                let messages = response.into_body().collect().await?.to_bytes();
                return Err(String::from_utf8_lossy(&messages).into_owned().into());
            }
            if self.stream {
                let mut frames = Frames::new(response.into_body());
                let (mut first, mut done) = (None, false);
                while let Some(frame) = frames.next().await? {
                    if first.is_none() && has_text(&frame) {
                        first = Some(started.elapsed());
                    }
                    done |= frame.ends_with(b"[DONE]");
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

/// Whether a chunk contains text.
fn has_text(frame: &[u8]) -> bool {
    let content = memmem::find(frame, b"\"content\":\"");
    content.is_some_and(|at| frame.get(at + 11).is_some_and(|byte| *byte != b'"'))
}
