//! Connections: opened late, reused, closed, or never opened.

use antiphon_core::{Piece, ProviderError};
use antiphon_model_server::{Ending, ModelServer, Reply};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{Echo, answer, echoed, post, read, server, transport, until};

fn whole() -> Vec<Result<Piece, ProviderError>> {
    vec![Ok(echoed("message", "a")), Ok(Piece::Done)]
}

fn unreachable(message: &str) -> Vec<Result<Piece, ProviderError>> {
    vec![Err(ProviderError::Connection { message: message.to_owned() })]
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = server(Reply::events("data: a\n\ndata: done\n\n")).await;
    let transport = transport();
    let unpolled = transport.stream(post(&format!("{}/unpolled", server.url())), Echo);
    let polled = transport.stream(post(&format!("{}/polled", server.url())), Echo);
    assert_eq!(read(polled).await, whole());
    drop(unpolled);
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!((paths, server.connections()), (vec!["/polled".to_owned()], 1));
}

#[tokio::test]
async fn a_request_is_json_and_accepts_events() {
    let server = server(Reply::events("data: done\n\n")).await;
    let post = post(&server.url()).header("x-version", "1");
    assert_eq!(read(transport().stream(post, Echo)).await, [Ok(Piece::Done)]);
    let requests = server.requests();
    let header = |name| requests[0].header(name);
    assert_eq!((requests[0].method.as_str(), requests[0].body.as_slice()), ("POST", &b"{}"[..]));
    assert_eq!(
        ["content-type", "accept", "user-agent", "x-version"].map(header),
        [
            Some("application/json"),
            Some("text/event-stream"),
            Some(concat!("antiphon/", env!("CARGO_PKG_VERSION"))),
            Some("1")
        ]
    );
}

#[tokio::test]
async fn a_connection_is_reused_after_a_complete_answer() {
    let replies = |_: &_, number| match number {
        0 => Reply::events("data: a\n\ndata: done\n\n"),
        1 => Reply::json(400, "no"),
        _ => Reply::events("data: a\n\ndata: done\n\n").split(1),
    };
    let server = ModelServer::start(replies).await.expect("a server");
    let transport = transport();
    let refused =
        ProviderError::Server { status: 400, message: "None no".to_owned(), retry_after: None };
    for expected in [whole(), vec![Err(refused)], whole()] {
        assert_eq!(read(transport.stream(post(&server.url()), Echo)).await, expected);
    }
    assert_eq!((server.served(), server.connections()), (3, 1));
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let server = server(Reply::events("data: a\n\n").ending(Ending::Stall)).await;
    let mut source = transport().stream(post(&server.url()), Echo);
    assert_eq!(source.next().await, Some(Ok(echoed("message", "a"))));
    assert_eq!(server.open_connections(), 1);
    drop(source);
    until(|| server.open_connections() == 0).await;
}

#[tokio::test]
async fn without_a_listener_the_error_says_so() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let reported = format!(
        "{}: nothing listens there; is the server running?",
        url.trim_start_matches("http://")
    );
    assert_eq!(read(transport().stream(post(&url), Echo)).await, unreachable(&reported));
}

#[tokio::test]
async fn a_server_without_tls_is_a_connection_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let plain = async {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("a reply");
        // Until the peer disconnects.
        let _ = socket.read_to_end(&mut Vec::new()).await;
    };
    let (answer, ()) = tokio::join!(read(transport().stream(post(&url), Echo)), plain);
    let host = url.trim_start_matches("https://");
    let reported = format!("{host}: received corrupt message of type InvalidContentType");
    assert_eq!(answer, unreachable(&reported));
}

#[tokio::test]
async fn a_response_that_is_not_http_is_a_connection_error() {
    let reply = Reply::events("hello\r\n\r\n").ending(Ending::Raw);
    let server = server(reply).await;
    let url = server.url();
    let read = read(transport().stream(post(&url), Echo)).await;
    let host = url.trim_start_matches("http://");
    assert_eq!(read, unreachable(&format!("{host}: invalid HTTP version parsed")));
}

#[tokio::test]
async fn a_connection_lost_before_the_first_event_is_a_connection_error() {
    let read = answer(Reply::events("data: ").ending(Ending::Cut)).await;
    assert_eq!(read, unreachable("the provider: unexpected EOF during chunk size line"));
}
