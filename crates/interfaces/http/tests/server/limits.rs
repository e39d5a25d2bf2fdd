//! Slow clients, and too many clients.

use std::time::Duration;

use antiphon_core::TaskStatus;
use antiphon_interface_transport::ServerLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{EventStream, Reply, get, post, request};
use crate::tasks::accepted;
use crate::world::TestServer;

const SOON: Duration = Duration::from_millis(50);

/// Sends `text` and nothing more, and receives what comes until the connection ends.
async fn begin(server: &TestServer, text: &str) -> Reply {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    socket.read_to_end(&mut received).await.unwrap();
    Reply::read(&String::from_utf8(received).unwrap())
}

#[tokio::test]
async fn a_slow_request_times_out() {
    let limits = ServerLimits { head_wait: SOON, body_wait: SOON, ..ServerLimits::default() };
    let server = TestServer::with(limits).await;
    for head in ["", "GET / HTTP/1.1\r\nhost: loc"] {
        let reply = begin(&server, head).await;
        assert!([0, 408].contains(&reply.status), "{head}: {reply:?}");
    }
    let whole = request(server.address, "POST", "/v1/tasks", Some("{\"message\":\"hi\"}"));
    let reply = begin(&server, &whole[..whole.len() - 3]).await;
    assert_eq!((reply.status, reply.code().as_str()), (408, "INVALID_REQUEST"));
    server.ended().await;
}

#[tokio::test]
async fn a_response_that_takes_too_long_times_out() {
    let server =
        TestServer::with(ServerLimits { answer_wait: SOON, ..ServerLimits::default() }).await;
    let reply = post(server.address, "/v1/tasks", &json!({"message": "x", "agent": "sleep"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    server.ended().await;
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits() {
    let server =
        TestServer::with(ServerLimits { connections_max: 1, ..ServerLimits::default() }).await;
    let first = TcpStream::connect(server.address).await.unwrap();
    let path = "/health";
    let mut second = Box::pin(get(server.address, path));
    let early = tokio::time::timeout(SOON, &mut second).await;
    assert!(early.is_err(), "there is one place: {early:?}");
    drop(first);
    assert_eq!(second.await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn a_stream_beyond_the_limit_is_refused_until_another_ends() {
    let server = TestServer::with(ServerLimits { streams_max: 1, ..ServerLimits::default() }).await;
    let task_id = accepted(&server, "hang").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut first = EventStream::open(server.address, &path, "").await;
    first.next().await.unwrap();
    let reply = get(server.address, &path).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    drop(first);
    // The server notices when it next has something to say.
    server.orchestrator.cancel(&task_id).await.unwrap();
    while get(server.address, &path).await.status == 503 {
        tokio::task::yield_now().await;
    }
    server.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_of_a_client_that_reads_nothing_is_closed() {
    let server =
        TestServer::with(ServerLimits { read_wait: SOON, ..ServerLimits::default() }).await;
    let task_id = accepted(&server, "shout").await;
    let state = server.orchestrator.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Completed);
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let path = format!("/v1/tasks/{task_id}/events");
    let text = request(server.address, "GET", &path, None);
    socket.write_all(text.as_bytes()).await.unwrap();
    // The server gives it up of its own accord, long before it would cut off what is under way.
    tokio::time::timeout(Duration::from_secs(5), server.ended()).await.unwrap();
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    assert!(
        !String::from_utf8_lossy(&received).contains("\"completed\""),
        "{} bytes",
        received.len()
    );
}
