//! How the server counts requests, also when the peer disconnects early.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use antiphon_conformance::provider::Traffic;
use antiphon_model_server::{Ending, ModelServer, Part, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for an expected event.
const WAIT_MAX: Duration = Duration::from_secs(10);

const REQUEST: &str = "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";

async fn server(reply: Reply) -> ModelServer {
    ModelServer::start(move |_, _| reply.clone()).await.expect("a server")
}

/// A peer that has sent this text.
async fn peer(server: &ModelServer, text: &str) -> TcpStream {
    let address = server.url().replace("http://", "");
    let mut peer = TcpStream::connect(address).await.expect("a connection");
    peer.write_all(text.as_bytes()).await.expect("to be heard");
    peer
}

async fn until(server: &ModelServer, expected: Traffic) {
    let mut traffic = server.traffic();
    let seen = tokio::time::timeout(WAIT_MAX, traffic.wait_for(|traffic| *traffic == expected));
    seen.await.expect("in time").expect("a running server");
}

#[tokio::test]
async fn a_request_is_open_until_its_reply_is_written() {
    let server = server(Reply::events("data: a\n\n").ending(Ending::Complete)).await;
    assert_eq!(*server.traffic().borrow(), Traffic { begun: 0, open: 0 });
    let _one = peer(&server, REQUEST).await;
    until(&server, Traffic { begun: 1, open: 0 }).await;
    let _two_on_one_connection = peer(&server, &REQUEST.repeat(2)).await;
    until(&server, Traffic { begun: 3, open: 0 }).await;
    assert_eq!((server.served(), server.connections()), (3, 2));
}

#[tokio::test]
async fn a_peer_that_disconnects_in_the_middle_of_a_reply_is_noticed() {
    let wait = Part::Wait(Duration::from_hours(1));
    let endless = vec![Part::Bytes(vec![b'x'; 1024 * 1024]); 64];
    let cases = [
        ("a stall", Reply::events("a").ending(Ending::Stall)),
        ("a wait", Reply { parts: vec![wait], ..Reply::events("") }),
        ("a reply without a reader", Reply { parts: endless, ..Reply::events("") }),
    ];
    for (name, reply) in cases {
        let server = server(reply).await;
        let peer = peer(&server, REQUEST).await;
        until(&server, Traffic { begun: 1, open: 1 }).await;
        drop(peer);
        until(&server, Traffic { begun: 1, open: 0 }).await;
        assert_eq!(server.served(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_wait_ends_although_the_peer_has_sent_its_next_request() {
    let wait = Part::Wait(Duration::from_millis(1));
    let server = server(Reply { parts: vec![wait], ..Reply::events("") }).await;
    let _peer = peer(&server, &REQUEST.repeat(2)).await;
    until(&server, Traffic { begun: 2, open: 0 }).await;
}

#[tokio::test]
async fn a_partial_request_is_not_counted() {
    let server = server(Reply::events("")).await;
    for half in ["POST / HT", "POST / HTTP/1.1\r\nacc", &REQUEST[..REQUEST.len() - 1]] {
        let mut peer = peer(&server, half).await;
        peer.shutdown().await.expect("to hang up");
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).await.expect("an end");
        assert_eq!(String::from_utf8(answer), Ok(String::new()), "{half}");
    }
    let seen = (*server.traffic().borrow(), server.requests(), server.connections());
    assert_eq!(seen, (Traffic { begun: 0, open: 0 }, vec![], 3));
}
