//! The client against servers that are broken, slow or hostile: it ends in time, keeps the token, and
//! delivers no event twice, out of order or from elsewhere.

use std::time::{Duration, Instant};

use antiphon_api::JournalEventQuery;
use antiphon_client::{
    ClientError, DeltaNotice, DeltaPiece, EVENT_BYTES_MAX, RESPONSE_BYTES_MAX, RetryPolicy,
    ServerJournal, StreamItem,
};
use antiphon_core::port::{
    JournalError, JournalLog, Read, TaskFilter, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{Event, Position, Seq, StreamEvent, TaskId};
use antiphon_test_server::TOKEN;
use serde_json::json;

use crate::fake_server::{Answer, FakeServer, STREAM_HEAD, frame, last_event_id};
use crate::server::{PERSISTENT, Server};

fn some_task() -> TaskId {
    TaskId::parse("some").unwrap()
}

/// The events of a real task.
async fn real_events() -> (TaskId, Vec<Event>) {
    let server = Server::start().await;
    let task_id = server.task("steps").await;
    let events = server.events(Some(&task_id)).await;
    server.stop().await;
    (task_id, events)
}

/// What a client of this stream gets, and the number of connections.
async fn streamed(
    task_id: &TaskId,
    answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
) -> (Result<Vec<Event>, ClientError>, usize) {
    let server = FakeServer::start(answer).await;
    let mut stream = server.client().task_events(task_id.clone(), Seq(0), PERSISTENT);
    let mut events = Vec::new();
    let ended = loop {
        match stream.next().await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break Ok(events),
            Err(error) => break Err(error),
        }
    };
    (ended, server.heads().len())
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_carries_the_token_nowhere() {
    for status in [301, 302, 303, 307, 308] {
        let other = FakeServer::start(|_, _| Answer::json("{}")).await;
        let (to, count) = (other.url(), Answer::text);
        let server = FakeServer::start(move |_, _| {
            let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {to}/v1/tasks/some\r\n");
            count(format!("{head}content-length: 0\r\nconnection: close\r\n\r\n"))
        })
        .await;
        let client = server.client();
        let error = client.task(&some_task()).await.unwrap_err();
        let ClientError::Protocol { reason } = &error else { panic!("{error:?}") };
        assert!(reason.contains("redirect"), "{reason}");
        let error = client.cancel_task(&some_task()).await.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
        let mut stream = client.task_events(some_task(), Seq(0), PERSISTENT);
        let error = stream.next().await.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
        assert_eq!((server.heads().len(), other.heads().len()), (3, 0), "HTTP {status}");
        assert!(server.heads()[0].contains(TOKEN), "the server that is named gets the token");
    }
}

#[tokio::test]
async fn a_body_that_drips_ends_when_the_time_of_a_response_is_over() {
    for status in ["200 OK", "500 Oops", "404 None"] {
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n");
        let server = FakeServer::start(move |_, _| Answer::Drips(head.clone().into())).await;
        let started = Instant::now();
        let error = server.client().task(&some_task()).await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{status}: {error:?}");
        let mut stream = server.client().task_events(some_task(), Seq(0), RetryPolicy::NEVER);
        assert!(stream.next().await.is_err());
        assert!(started.elapsed() < Duration::from_secs(5), "{status}");
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let server = FakeServer::start(|_, _| Answer::Hangs(Vec::new())).await;
    let error = server.client().task(&some_task()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    let mut stream = server.client().task_events(some_task(), Seq(0), RetryPolicy::NEVER);
    let error = stream.next().await.unwrap_err();
    assert!(matches!(error, ClientError::StreamLost { .. }), "{error:?}");
}

#[tokio::test]
async fn a_response_and_an_event_that_are_too_large_are_refused() {
    let large = "x".repeat(RESPONSE_BYTES_MAX + 1);
    let server = FakeServer::start(move |_, _| Answer::json(&large)).await;
    let endpoint = server.client().endpoint().clone();
    // Not in a retry_at_once: a debug build reads slowly.
    let patient = crate::server::client(endpoint, TOKEN);
    let error = patient.task(&some_task()).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    let line = format!("data: {}", "x".repeat(EVENT_BYTES_MAX + 1));
    let server = FakeServer::start(move |_, _| Answer::stream(&line)).await;
    let mut stream = server.client().task_events(some_task(), Seq(0), PERSISTENT);
    let error = stream.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    assert_eq!(server.heads().len(), 1, "it is not asked for again");
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_is_a_protocol_error_at_once() {
    for kind in ["content-type: text/html\r\n", "content-type: application/json\r\n", ""] {
        let answer = format!("HTTP/1.1 200 OK\r\n{kind}content-length: 5\r\n\r\nhello");
        let (ended, connections) =
            streamed(&some_task(), move |_, _| Answer::text(answer.clone())).await;
        assert!(matches!(ended, Err(ClientError::Protocol { .. })), "{kind}: {ended:?}");
        assert_eq!(connections, 1, "{kind}");
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_retried_and_then_reported_in_its_words() {
    let error = r#"{"code":"INTERNAL_ERROR","message":"the disk is full"}"#;
    let answer = format!(
        "HTTP/1.1 500 Oops\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{error}",
        error.len()
    );
    let server = FakeServer::start(move |_, _| Answer::text(answer.clone())).await;
    let failed = server.client().task(&some_task()).await.unwrap_err();
    assert!(failed.is_transient() && failed.to_string().contains("the disk is full"), "{failed:?}");
    let retry = RetryPolicy { attempts_max: 3, ..PERSISTENT };
    let mut stream = server.client().task_events(some_task(), Seq(0), retry);
    let failed = stream.next().await.unwrap_err();
    assert!(failed.to_string().contains("the disk is full"), "{failed:?}");
    assert_eq!(server.heads().len(), 1 + 4);
}

#[tokio::test]
async fn repeated_and_missing_events_are_delivered_once_and_in_order() {
    let (task_id, events) = real_events().await;
    let frames: Vec<String> = events.iter().map(frame).collect();
    let (ended, connections) = streamed(&task_id, move |number, head| {
        let seen = last_event_id(head);
        let body = match number {
            // Twice, and backwards.
            0 => [&frames[0], &frames[1], &frames[1], &frames[0], &frames[2]]
                .map(String::as_str)
                .concat(),
            // One is left out.
            1 => [&frames[3], &frames[5]].map(String::as_str).concat(),
            // Everything again, from the beginning.
            2 => frames[..=seen].concat(),
            _ => frames[seen..].concat(),
        };
        Answer::stream(&body)
    })
    .await;
    assert_eq!(ended.unwrap(), events);
    assert!(connections >= 4, "{connections}");
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_goes_on_with_the_next_event() {
    let (task_id, events) = real_events().await;
    let frames: Vec<String> = events.iter().map(frame).collect();
    let whole = frames.concat().len();
    for cut in (0..whole).step_by(whole / 40) {
        let frames = frames.clone();
        let (ended, _) = streamed(&task_id, move |number, head| {
            let body = frames[last_event_id(head)..].concat();
            let end = if number == 0 { cut } else { body.len() };
            Answer::Bytes([STREAM_HEAD.as_bytes(), &body.as_bytes()[..end]].concat())
        })
        .await;
        assert_eq!(ended.unwrap(), events, "cut after {cut} bytes");
    }
}

#[tokio::test]
async fn an_event_of_another_task_ends_the_stream() {
    let (_, events) = real_events().await;
    let body = frame(&events[0]);
    let (ended, _) = streamed(&some_task(), move |_, _| Answer::stream(&body)).await;
    assert!(matches!(ended, Err(ClientError::Protocol { .. })), "{ended:?}");
}

#[tokio::test]
async fn a_gap_in_the_whole_journal_is_read_again() {
    let (_, events) = real_events().await;
    let frames: Vec<String> = events
        .iter()
        .map(|event| {
            let json = serde_json::to_string(event).unwrap();
            format!("id: {}\ndata: {json}\n\n", event.position)
        })
        .collect();
    let server = FakeServer::start(move |number, head| {
        let body = match number {
            0 => [&frames[0], &frames[2]].map(String::as_str).concat(),
            _ => frames[last_event_id(head)..].concat(),
        };
        Answer::Hangs(format!("{STREAM_HEAD}{body}").into())
    })
    .await;
    let query = JournalEventQuery { after: Some(Position(0)), ..JournalEventQuery::default() };
    let mut stream = server.client().journal_events(query, PERSISTENT);
    let mut seen = Vec::new();
    while seen.len() < events.len() {
        seen.push(stream.next().await.unwrap().unwrap());
    }
    assert_eq!(seen, events);
}

#[tokio::test]
async fn notices_of_a_slow_client_and_unknown_deltas_are_no_events() {
    let (task_id, events) = real_events().await;
    let notices = "event: lag\ndata: {\"behind\":20000,\"position\":1}\n\n\
                   event: delta\ndata: {\"v\":9,\"type\":\"hologram\",\"data\":{}}\n\n: alive\n\n";
    let body: String = events.iter().map(|event| frame(event) + notices).collect();
    let (ended, connections) = streamed(&task_id, move |_, _| Answer::stream(&body)).await;
    assert_eq!((ended.unwrap(), connections), (events, 1));
}

#[tokio::test]
async fn deltas_are_delivered_between_events_where_they_are_asked_for() {
    let (task_id, events) = real_events().await;
    let delta = json!({
        "v": 1, "task_id": task_id, "type": "text_delta", "data": { "delta": "Loo" },
    });
    let missed = json!({ "v": 1, "type": "deltas_missed", "data": { "count": 7 } });
    let body = format!(
        "{}event: delta\ndata: {delta}\n\nevent: delta\ndata: {missed}\n\n{}",
        frame(&events[0]),
        events[1..].iter().map(frame).collect::<String>()
    );
    let server = FakeServer::start(move |_, _| Answer::stream(&body)).await;
    let mut stream = server.client().live_task_events(task_id, Seq(0), PERSISTENT);
    let mut items = Vec::new();
    while let Some(item) = stream.next().await.unwrap() {
        items.push(item);
    }
    assert_eq!(items.len(), events.len() + 2);
    let StreamItem::Delta(delta) = &items[1] else { panic!("{:?}", items[1]) };
    assert_eq!(delta.piece, DeltaPiece::Answer(StreamEvent::TextDelta { delta: "Loo".to_owned() }));
    let StreamItem::Delta(missed) = &items[2] else { panic!("{:?}", items[2]) };
    assert_eq!(missed.piece, DeltaPiece::Other(DeltaNotice::DeltasMissed { count: 7 }));
    assert!(server.heads()[0].contains("deltas=true"), "{:?}", server.heads());
}

#[tokio::test]
async fn a_page_of_the_journal_that_is_out_of_order_is_refused() {
    let (task_id, events) = real_events().await;
    let page = |events: &[&Event], next: u64| {
        json!({ "events": events, "next": next, "head": 99 }).to_string()
    };
    for page in [
        page(&[&events[1], &events[0]], 2),
        page(&[&events[0], &events[0]], 1),
        // It would be read again and again.
        page(&[&events[0], &events[1]], 1),
        "[]".to_owned(),
        "{\"events\":[],\"next\":1".to_owned(),
    ] {
        let server = FakeServer::start(move |_, _| Answer::json(&page)).await;
        let journal = ServerJournal::new(server.client(), RetryPolicy::NEVER);
        let limit = std::num::NonZeroUsize::MIN;
        let read = Read { task_id: Some(task_id.clone()), after: Position(0), limit };
        let error = journal.read(read).await.unwrap_err();
        assert!(matches!(error, JournalError::Unavailable { .. }), "{error:?}");
        let error = journal.last_error().unwrap();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_its_cursor_does_not_keep_the_client_forever() {
    let server = Server::start().await;
    let task_id = server.task("hello").await;
    let summary = server.client().task(&task_id).await.unwrap().summary;
    server.stop().await;
    let page = json!({ "tasks": [summary], "next_cursor": task_id }).to_string();
    let fake = FakeServer::start(move |_, _| Answer::json(&page)).await;
    let journal = ServerJournal::new(fake.client(), RetryPolicy::NEVER);
    let limit = std::num::NonZeroUsize::new(1000).unwrap();
    let which = TaskSelector::Matching(TaskFilter::default());
    let tasks = journal.tasks(TaskQuery { which, limit }).await.unwrap();
    assert_eq!((tasks.len(), fake.heads().len()), (2, 2));
    // It ignores the prefix, too: no other task is taken for this one.
    let which = TaskSelector::IdPrefix("no-such-task".to_owned());
    assert_eq!(journal.tasks(TaskQuery { which, limit }).await.unwrap(), []);
}
