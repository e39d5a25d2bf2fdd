//! A client that sends what a test gives it, and returns what comes.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::TOKEN;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The code of an error, which has a message and nothing else that is not known.
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        // Chat completions have the same in OpenAI's shape.
        let error = body.get("error").unwrap_or(&body);
        assert!(!error["message"].as_str().unwrap().is_empty(), "{body}");
        error["code"].as_str().unwrap().to_owned()
    }
}

/// A request with everything that makes it welcome.
pub(crate) fn request(address: SocketAddr, method: &str, path: &str, body: Option<&str>) -> String {
    let head =
        format!("{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n");
    match body {
        Some(body) => {
            let kind = "content-type: application/json";
            format!("{head}{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }
        None => head + "\r\n",
    }
}

/// Sends `text` and reads the whole answer.
pub(crate) async fn say(address: SocketAddr, text: &str) -> Reply {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // A server that turns a request away may reset the rest of it.
    let _ = socket.write_all(text.as_bytes()).await;
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    Reply::read(&String::from_utf8(received).unwrap())
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Reply {
    say(address, &request(address, "GET", path, None)).await
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    say(address, &request(address, "POST", path, Some(&body.to_string()))).await
}

/// The same, under a name of the client's own.
pub(crate) async fn post_as(address: SocketAddr, key: &str, path: &str, body: &Value) -> Reply {
    let text = request(address, "POST", path, Some(&body.to_string()));
    say(address, &text.replacen("\r\n", &format!("\r\nidempotency-key: {key}\r\n"), 1)).await
}

pub(crate) async fn order(address: SocketAddr, path: &str) -> Reply {
    say(address, &request(address, "POST", path, None)).await
}

/// A server-sent event; 0 is the id of one that has none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamedEvent {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of events that is being read.
pub(crate) struct EventStream {
    socket: TcpStream,
    unread: String,
    pub(crate) comments: usize,
}

impl EventStream {
    /// Opens the events of a task; `more` are further lines of the head.
    pub(crate) async fn open(address: SocketAddr, path: &str, more: &str) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request =
            request(address, "GET", path, None).replacen("\r\n", &format!("\r\n{more}"), 1);
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut event_stream = Self { socket, unread: String::new(), comments: 0 };
        while !event_stream.unread.contains("\r\n\r\n") {
            assert!(event_stream.more().await, "no head: {}", event_stream.unread);
        }
        let reply = Reply::read(&event_stream.unread);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.head.contains("content-type: text/event-stream"), "{reply:?}");
        event_stream.unread = reply.body;
        event_stream
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.socket.read(&mut bytes).await.unwrap_or(0);
        self.unread.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<StreamedEvent> {
        loop {
            let Some((block, rest)) = self.unread.split_once("\n\n") else {
                if !self.more().await {
                    return None;
                }
                continue;
            };
            let (block, rest) = (block.to_owned(), rest.to_owned());
            self.unread = rest;
            if block.starts_with(':') {
                self.comments += 1;
                continue;
            }
            let has_id = block.lines().any(|line| line.starts_with("id:"));
            let field = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
                let value = lines.next().unwrap_or_else(|| panic!("no {name} in {block}"));
                assert_eq!(lines.next(), None);
                value.trim().to_owned()
            };
            return Some(StreamedEvent {
                id: if has_id { field("id:").parse().unwrap() } else { 0 },
                kind: field("event:"),
                data: serde_json::from_str(&field("data:")).unwrap(),
            });
        }
    }

    pub(crate) async fn all(mut self) -> Vec<StreamedEvent> {
        let mut said = Vec::new();
        while let Some(event) = self.next().await {
            said.push(event);
        }
        said
    }
}
