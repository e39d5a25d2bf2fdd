//! The end of a server: nothing new, what is under way is answered, streams end, nothing is left.

use std::time::Duration;

use antiphon_interface_transport::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{EventStream, Reply, request};
use crate::tasks::accepted;
use crate::world::TestServer;

#[tokio::test]
async fn at_shutdown_streams_end_and_new_connections_are_refused() {
    let server = TestServer::new().await;
    let address = server.address;
    let task_id = accepted(&server, "hang").await;
    let mut event_stream =
        EventStream::open(address, &format!("/v1/tasks/{task_id}/events"), "").await;
    while event_stream.next().await.unwrap().kind != "tool_started" {}
    server.ended().await;
    assert_eq!(event_stream.next().await, None);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn at_shutdown_an_open_request_is_answered() {
    let mut server = TestServer::new().await;
    let text = request(server.address, "POST", "/v1/tasks", Some("{\"message\":\"hi\"}"));
    let (begun, rest) = text.split_at(text.len() - 3);
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(begun.as_bytes()).await.unwrap();
    // A second connection is answered behind the first: that one has been taken by then.
    assert_eq!(crate::client::get(server.address, "/health").await.status, 200);
    server.stop();
    socket.write_all(rest.as_bytes()).await.unwrap();
    let mut received = String::new();
    socket.read_to_string(&mut received).await.unwrap();
    assert_eq!(Reply::read(&received).status, 201, "{received}");
    server.ended().await;
}

#[tokio::test]
async fn a_connection_that_does_not_end_in_time_is_closed() {
    let drain_wait = Duration::from_millis(50);
    let server = TestServer::with(ServerLimits { drain_wait, ..ServerLimits::default() }).await;
    let text = request(server.address, "POST", "/v1/tasks", Some("{\"message\":\"hi\"}"));
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(&text.as_bytes()[..text.len() - 3]).await.unwrap();
    assert_eq!(crate::client::get(server.address, "/health").await.status, 200);
    server.ended().await;
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    assert_eq!(received, b"");
}
