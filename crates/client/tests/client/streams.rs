//! Streams: each event once and in order, with any fault of the connection.

use std::sync::atomic::Ordering;
use std::time::Duration;

use antiphon_api::{CreateTask, JournalEventQuery};
use antiphon_client::{
    Client, ClientConfig, ClientError, Endpoint, EventStream, RetryPolicy, Timeouts,
};
use antiphon_core::{Event, Position, Seq};
use antiphon_test_server::{CuttingProxy, TOKEN};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::server::{PERSISTENT, Server, client};

fn through(proxy: &CuttingProxy) -> Client {
    client(Endpoint::parse(&format!("http://{}", proxy.address)).unwrap(), TOKEN)
}

async fn all(mut stream: EventStream) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await.unwrap() {
        events.push(event);
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_stream_over_connections_that_break_has_no_gap_and_no_duplicate() {
    let server = Server::start().await;
    let mut cuts = 0;
    for seed in 0..16 {
        let task_id = server.task("steps").await;
        let proxy = CuttingProxy::new(server.address, seed, 3000).await;
        let stream = through(&proxy).task_events(task_id.clone(), Seq(0), PERSISTENT);
        assert_eq!(all(stream).await, server.events(Some(&task_id)).await, "seed {seed}");
        cuts += proxy.cuts.load(Ordering::SeqCst);
    }
    assert!(cuts > 16, "only {cuts} connections were cut");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_stream_over_connections_that_break_has_no_gap_and_no_duplicate() {
    let server = Server::start().await;
    server.task("steps").await;
    server.task("steps").await;
    let expected = server.events(None).await;
    for seed in 0..8 {
        let proxy = CuttingProxy::new(server.address, seed, 6000).await;
        let query = JournalEventQuery { after: Some(Position(0)), ..JournalEventQuery::default() };
        let mut stream = through(&proxy).journal_events(query, PERSISTENT);
        let mut events = Vec::new();
        while events.len() < expected.len() {
            events.extend(stream.next_batch().await.unwrap());
        }
        assert_eq!(events, expected, "seed {seed}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stream_continues_at_a_server_that_is_started_again() {
    let server = Server::start().await;
    let task_id = server.task("ask").await;
    let before = server.events(Some(&task_id)).await;
    let mut stream = server.client().task_events(task_id.clone(), Seq(0), PERSISTENT);
    for expected in &before {
        assert_eq!(stream.next().await.unwrap().as_ref(), Some(expected));
    }
    let (journal, address) = server.stop().await;
    let server = Server::restart(journal, address).await;
    let cancel = async { server.client().cancel_task(&task_id).await.unwrap() };
    let (rest, _) = tokio::join!(all(stream), cancel);
    assert_eq!(rest, server.events(Some(&task_id)).await[before.len()..]);
    server.stop().await;
}

#[tokio::test]
async fn the_stream_of_a_task_ends_after_its_last_event() {
    let server = Server::start().await;
    let task_id = server.task("hello").await;
    let events = server.events(Some(&task_id)).await;
    let last = events.last().unwrap().seq;
    let middle = Seq(last.0 - 2);
    let after = |seq| server.client().task_events(task_id.clone(), seq, RetryPolicy::NEVER);
    assert_eq!(all(after(Seq(0))).await, events);
    assert_eq!(all(after(middle)).await, events[events.len() - 2..]);
    assert_eq!(all(after(last)).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_without_retries_reports_that_it_broke() {
    let server = Server::start().await;
    let task_id = server.task("steps").await;
    let proxy = CuttingProxy::new(server.address, 1, 2000).await;
    let mut stream = through(&proxy).task_events(task_id, Seq(0), RetryPolicy::NEVER);
    let error = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the proxy lets less than the whole stream through"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClientError::StreamLost { .. }), "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_journal_stream_that_has_no_position_yet_does_not_reconnect() {
    let server = Server::start().await;
    let proxy = CuttingProxy::new(server.address, 1, u64::MAX).await;
    let mut stream = through(&proxy).journal_events(JournalEventQuery::default(), PERSISTENT);
    let stopping = async {
        // The head of the response shows that the stream is open.
        proxy.forwarded.clone().wait_for(|bytes| *bytes > 0).await.unwrap();
        server.stop().await
    };
    let (next, _) = tokio::join!(stream.next(), stopping);
    assert!(matches!(next, Err(ClientError::StreamLost { .. })), "{next:?}");
}

#[tokio::test]
async fn new_events_of_the_journal_arrive_and_a_filter_selects_them() {
    let server = Server::start().await;
    let query = JournalEventQuery {
        types: Some("task_created".to_owned()),
        after: Some(Position(0)),
        ..JournalEventQuery::default()
    };
    let mut stream = server.client().journal_events(query, PERSISTENT);
    let (first, second) = (server.task("hello").await, server.task("hello").await);
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(stream.next().await.unwrap().unwrap().task_id);
    }
    assert_eq!(seen, [first, second]);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_silent_for_too_long_is_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let timeouts = Timeouts { silence: Duration::from_millis(50), ..Timeouts::default() };
    let client = Client::new(ClientConfig { endpoint, token: TOKEN.into(), timeouts }).unwrap();
    let task_id = antiphon_core::TaskId::parse("silent").unwrap();
    let mut stream = client.task_events(task_id, Seq(0), RetryPolicy::NEVER);
    let silent = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let lost = tokio::select! {
        next = stream.next() => next.unwrap_err(),
        () = silent => panic!("it never ends"),
    };
    assert!(matches!(lost, ClientError::StreamLost { .. }), "{lost:?}");
}

#[tokio::test]
async fn an_event_that_was_not_delivered_is_delivered_by_the_next_call() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.create_task(&CreateTask::text("steps").unwrap(), None).await.unwrap();
    let mut stream = client.task_events(created.task_id.clone(), Seq(0), PERSISTENT);
    let mut events = Vec::new();
    loop {
        // Canceled again and again, at any point.
        match tokio::time::timeout(Duration::from_micros(300), stream.next()).await {
            Ok(Ok(Some(event))) => events.push(event),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => panic!("{error}"),
            Err(_) => {}
        }
    }
    assert_eq!(events, server.events(Some(&created.task_id)).await);
    server.stop().await;
}
