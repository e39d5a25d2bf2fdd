//! Limits on headers, time and connections.

use std::sync::Arc;
use std::time::Duration;

use antiphon_egress_proxy::{CALL_CONNECTIONS_MAX, CONNECTIONS_MAX, Egress, IDLE_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::world::{Names, World, status};

/// Opens a tunnel and returns both ends.
async fn tunnel(world: &World, host: &TcpListener) -> (TcpStream, TcpStream) {
    let port = host.local_addr().unwrap().port();
    let mut client = world.client().await;
    let connect = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    client.write_all(connect.as_bytes()).await.unwrap();
    let (host, _) = host.accept().await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        client.read_buf(&mut answer).await.unwrap();
    }
    (client, host)
}

async fn allowed_host() -> (World, TcpListener) {
    let host = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = host.local_addr().unwrap().port();
    (World::new(&format!("localhost:{port}"), "").await, host)
}

#[tokio::test]
async fn headers_are_bounded() {
    let world = World::new("localhost", "").await;
    let long = "x".repeat(400_000);
    let answer = world
        .send(&format!("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"))
        .await;
    assert_eq!(status(&answer), 431, "{answer}");
    let many = "X-Many: 1\r\n".repeat(200);
    let answer = world
        .send(&format!("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"))
        .await;
    assert_eq!(status(&answer), 431, "{answer}");
    assert!(world.traffic.take().hosts.is_empty());
}

#[tokio::test]
async fn a_further_connection_waits_for_a_free_place() {
    let (world, host) = allowed_host().await;
    let mut open = Vec::new();
    for _ in 0..CALL_CONNECTIONS_MAX {
        open.push(tunnel(&world, &host).await);
    }
    let mut next = Box::pin(tunnel(&world, &host));
    assert!(timeout(Duration::from_millis(300), &mut next).await.is_err());
    open.pop();
    timeout(Duration::from_secs(10), next).await.unwrap();
}

#[tokio::test]
async fn calls_without_a_connection_take_no_place() {
    let names = Arc::<Names>::default();
    let egress = Egress::new(names);
    let host = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = host.local_addr().unwrap().port();
    let mut calls = Vec::new();
    for _ in 0..=CONNECTIONS_MAX {
        calls.push(World::of(&egress, &format!("localhost:{port}"), "").await);
    }
    let last = calls.last().unwrap();
    timeout(Duration::from_secs(10), tunnel(last, &host)).await.unwrap();
}

#[tokio::test]
async fn an_idle_tunnel_ends() {
    let (world, host) = allowed_host().await;
    let (mut client, _host) = tunnel(&world, &host).await;
    tokio::time::pause();
    let begun = Instant::now();
    let mut rest = Vec::new();
    // The clock runs ahead to the next timer while nothing else happens.
    let _ = client.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    assert!(begun.elapsed() + Duration::from_secs(1) >= IDLE_MAX, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn connections_end_with_the_proxy() {
    let (mut world, host) = allowed_host().await;
    let (mut client, mut host) = tunnel(&world, &host).await;
    world.serving.shutdown().await;
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await;
    let _ = host.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    assert!(TcpStream::connect(world.proxy).await.is_err());
}
