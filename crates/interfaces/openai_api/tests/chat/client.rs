//! A client that sends what a test gives it, and returns what comes.

use antiphon_core::TaskId;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{TOKEN, TestServer};

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The task behind it.
    pub(crate) fn task(&self) -> TaskId {
        task(&self.head)
    }

    /// The `data` of its server-sent events; anything else in it is a fault.
    pub(crate) fn lines(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        assert!(self.head.contains("content-type: text/event-stream"), "{self:?}");
        let blocks = self.body.strip_suffix("\n\n").unwrap_or_else(|| panic!("{self:?}"));
        let data = |block: &str| {
            let data = block.strip_prefix("data: ").unwrap_or_else(|| panic!("{block:?}"));
            assert!(!data.contains('\n'), "{data:?}");
            data.to_owned()
        };
        blocks.split("\n\n").map(data).collect()
    }

    /// The chunks of a stream that came to its end.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let mut lines = self.lines();
        assert_eq!(lines.pop().as_deref(), Some("[DONE]"));
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn task(head: &str) -> TaskId {
    let mut lines = head.lines().filter_map(|line| line.strip_prefix("x-antiphon-task: "));
    TaskId::parse(lines.next().unwrap_or_else(|| panic!("no task: {head}"))).unwrap()
}

/// A request; `more` are further lines of its head.
pub(crate) fn request(method: &str, path: &str, more: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request, and reads nothing yet.
pub(crate) async fn begin(server: &TestServer, more: &str, body: &Value) -> TcpStream {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let text = named(server, &request("POST", CHAT, more, &body.to_string()));
    socket.write_all(text.as_bytes()).await.unwrap();
    socket
}

/// Reads until these words have come.
pub(crate) async fn hear(socket: &mut TcpStream, words: &str) -> String {
    let mut received = String::new();
    while !received.contains(words) {
        let mut bytes = [0; 4096];
        let count = socket.read(&mut bytes).await.unwrap();
        assert!(count > 0, "it ended: {received}");
        received.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    received
}

pub(crate) async fn rest(mut socket: TcpStream) -> Reply {
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    Reply::read(&String::from_utf8(received).unwrap())
}

pub(crate) async fn ask(server: &TestServer, body: &Value) -> Reply {
    rest(begin(server, "", body).await).await
}

pub(crate) async fn say(server: &TestServer, text: &str) -> Reply {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    // A server that turns a request away may reset the rest of it.
    let _ = socket.write_all(named(server, text).as_bytes()).await;
    rest(socket).await
}

fn named(server: &TestServer, text: &str) -> String {
    text.replacen("host: localhost", &format!("host: {}", server.address), 1)
}
