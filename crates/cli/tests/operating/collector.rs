//! A collector of traces: it takes what comes, and says what that was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// What came.
pub(crate) struct Came {
    pub(crate) head: String,
    pub(crate) spans: Vec<Span>,
}

pub(crate) struct Collector {
    pub(crate) endpoint: String,
    came: Receiver<Came>,
}

impl Collector {
    /// Listens until the collector is dropped.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, came) = sync_channel(64);
        thread::spawn(move || {
            for socket in listener.incoming() {
                if sender.send(take(socket.unwrap())).is_err() {
                    break;
                }
            }
        });
        Self { endpoint, came }
    }

    /// Everything that came so far.
    pub(crate) fn all(&self) -> Vec<Came> {
        self.came.try_iter().collect()
    }
}

fn take(socket: TcpStream) -> Came {
    let mut reader = BufReader::new(&socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    // The request is decoded before the answer: every answered request is counted.
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    (&socket).write_all(answer).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    Came { head, spans: scopes.flat_map(|scope| scope.spans).collect() }
}
