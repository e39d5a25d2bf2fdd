//! A server that answers what a test gives it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_client::{Client, ClientConfig, Endpoint, Timeouts};
use antiphon_core::Event;
use antiphon_test_server::TOKEN;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Short waits, so that a test of a wait ends soon.
pub(crate) const SHORT: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    response: Duration::from_millis(400),
    silence: Duration::from_millis(400),
};

/// What a connection gets.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then nothing more, without an end.
    Hangs(Vec<u8>),
    /// These bytes, then one more byte after another, without an end.
    Drips(Vec<u8>),
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    pub(crate) fn json(body: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        Self::text(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
    }

    /// A stream with this body.
    pub(crate) fn stream(body: &str) -> Self {
        Self::text(format!("{STREAM_HEAD}{body}"))
    }
}

pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A server that is not Antiphon. It ends when it is dropped.
pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _connections: JoinSet<()>,
}

impl FakeServer {
    /// Answers each connection with what `answer` makes of its number, from 0, and of its request.
    pub(crate) async fn start(
        answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&heads), Arc::new(answer));
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                open.spawn(async move {
                    let mut socket = socket;
                    let head = head(&mut socket).await;
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(head.clone());
                        seen.len() - 1
                    };
                    speak(socket, answer(number, &head)).await;
                });
            }
        });
        Self { address, heads, _connections: connections }
    }

    /// The heads of all requests, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        let endpoint = Endpoint::parse(&self.url()).unwrap();
        Client::new(ClientConfig { endpoint, token: TOKEN.into(), timeouts: SHORT }).unwrap()
    }
}

async fn head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && socket.read(&mut byte).await.is_ok_and(|read| read > 0) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

async fn speak(mut socket: TcpStream, answer: Answer) {
    match answer {
        Answer::Bytes(bytes) => {
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
        }
        Answer::Hangs(bytes) => {
            let _ = socket.write_all(&bytes).await;
            std::future::pending::<()>().await;
        }
        Answer::Drips(bytes) => {
            let _ = socket.write_all(&bytes).await;
            while socket.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// An event of a task's stream.
pub(crate) fn frame(event: &Event) -> String {
    let (id, kind) = (event.seq, event.body.event_type());
    format!("id: {id}\nevent: {kind}\ndata: {}\n\n", serde_json::to_string(event).unwrap())
}

/// The last event that a request has seen.
pub(crate) fn last_event_id(head: &str) -> usize {
    let line = head.lines().find_map(|line| line.strip_prefix("last-event-id: "));
    line.map_or(0, |id| id.trim().parse().unwrap())
}
