//! The whole journal as one stream: nothing twice, nothing left out, and pieces only where they belong.

use antiphon_core::port::{Append, Clock, Expected, JournalLog, SystemClock};
use antiphon_core::{
    EventBody, HistoryRef, MessageAppended, SessionId, StatusChanged, TaskCreated, TaskId,
    TaskStatus, UserMessage,
};
use antiphon_interface_transport::LAG_EVENTS_MAX;
use serde_json::json;

use crate::client::{EventStream, StreamedEvent, get, post, request, say};
use crate::tasks::accepted;
use crate::world::TestServer;

const EVENTS: &str = "/v1/events";

/// Hears until a task has ended.
async fn until_end(event_stream: &mut EventStream, task_id: &TaskId) -> Vec<StreamedEvent> {
    let mut said = Vec::new();
    loop {
        let event = event_stream.next().await.unwrap();
        let ended = event.data["task_id"] == json!(task_id)
            && event.kind == "status_changed"
            && ["completed", "canceled"].contains(&event.data["data"]["status"].as_str().unwrap());
        said.push(event);
        if ended {
            return said;
        }
    }
}

async fn written(server: &TestServer, task_id: &str, events: Vec<EventBody>) {
    let append = Append {
        task_id: TaskId::parse(task_id).unwrap(),
        expected: Expected::NoTask,
        at: SystemClock.now(),
        events,
        key: None,
    };
    server.journal.append(append).await.unwrap();
}

#[tokio::test]
async fn events_come_in_order_and_a_client_that_reconnects_misses_none() {
    let server = TestServer::new().await;
    let first = accepted(&server, "a look").await;
    server.orchestrator.wait(&first).await.unwrap();
    let mut event_stream =
        EventStream::open(server.address, &format!("{EVENTS}?after=0"), "").await;
    let mut all = until_end(&mut event_stream, &first).await;
    let second = accepted(&server, "another look").await;
    all.extend(until_end(&mut event_stream, &second).await);
    let ids: Vec<u64> = all.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=all.len() as u64).collect::<Vec<_>>());
    assert!(all.iter().all(|event| event.data["position"] == json!(event.id)));
    for seen in 0..all.len() - 1 {
        let header = format!("last-event-id: {seen}\r\n");
        let mut back =
            EventStream::open(server.address, &format!("{EVENTS}?after=0"), &header).await;
        assert_eq!(until_end(&mut back, &second).await.last(), all.last());
        let mut back =
            EventStream::open(server.address, &format!("{EVENTS}?after={seen}"), "").await;
        assert_eq!(back.next().await.as_ref(), Some(&all[seen]));
    }
    server.ended().await;
}

#[tokio::test]
async fn a_stream_without_a_position_starts_now() {
    let server = TestServer::new().await;
    let first = accepted(&server, "a look").await;
    server.orchestrator.wait(&first).await.unwrap();
    let mut event_stream = EventStream::open(server.address, EVENTS, "").await;
    let second = accepted(&server, "another look").await;
    let received = until_end(&mut event_stream, &second).await;
    assert!(received.iter().all(|event| event.data["task_id"] == json!(second)), "{received:?}");
    assert_eq!(received[0].kind, "task_created");
    server.ended().await;
}

#[tokio::test]
async fn a_filter_passes_only_matching_events() {
    let server = TestServer::new().await;
    let created = |agent: &str, session: &str, parent: Option<&str>| TaskCreated {
        parent: parent.map(|parent| TaskId::parse(parent).unwrap()),
        root: parent.map(|parent| TaskId::parse(parent).unwrap()),
        ..TaskCreated::new(agent, SessionId::parse(session).unwrap())
    };
    let done = || StatusChanged::new(TaskStatus::Completed).into();
    written(&server, "top", vec![created("boss", "s1", None).into(), done()]).await;
    written(&server, "low", vec![created("helper", "s2", Some("top")).into(), done()]).await;
    written(&server, "other", vec![created("helper", "s3", None).into(), done()]).await;
    let end = accepted(&server, "end").await;
    server.orchestrator.wait(&end).await.unwrap();
    for (filter, expected) in [
        ("agent=helper", vec![3, 4, 5, 6]),
        ("agent=helper&type=task_created", vec![3, 5]),
        ("session_id=s1", vec![1, 2]),
        ("root=top", vec![1, 2, 3, 4]),
        ("root=top&agent=helper&type=status_changed,task_created", vec![3, 4]),
        // Begun behind the creation, whose task it is has to be looked up.
        ("root=top&after=3", vec![4]),
    ] {
        let after = if filter.contains("after") { "" } else { "&after=0" };
        let path = format!("{EVENTS}?{filter}{after}");
        let mut event_stream = EventStream::open(server.address, &path, "").await;
        let mut ids = Vec::new();
        for _ in &expected {
            ids.push(event_stream.next().await.unwrap().id);
        }
        assert_eq!(ids, expected, "{filter}");
    }
    server.ended().await;
}

#[tokio::test]
async fn future_positions_and_unknown_types_are_refused() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "a look").await;
    server.orchestrator.wait(&task_id).await.unwrap();
    let history = HistoryRef { task_id: task_id.clone(), seq: antiphon_core::Seq(1) };
    let child = TaskCreated {
        parent: Some(task_id.clone()),
        root: Some(task_id.clone()),
        history: Some(history),
        ..TaskCreated::new("x", SessionId::parse("s").unwrap())
    };
    written(&server, "child", vec![child.into()]).await;
    for (query, status) in [
        ("after=100000", 400),
        ("after=x", 400),
        ("type=nonsense", 400),
        ("type=", 400),
        ("type=task_created,lag", 400),
        ("root=child", 400),
        ("root=nobody", 404),
        ("session_id=a%20b", 400),
        ("deltas=perhaps", 400),
    ] {
        let reply = get(server.address, &format!("{EVENTS}?{query}")).await;
        assert_eq!(reply.status, status, "{query}: {reply:?}");
        reply.code();
    }
    let bad = request(server.address, "GET", EVENTS, None);
    let bad = bad.replacen("\r\n", "\r\nlast-event-id: -1\r\n", 1);
    assert_eq!(say(server.address, &bad).await.status, 400);
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_is_far_behind_gets_a_lag_event_and_every_event() {
    let server = TestServer::new().await;
    let message = || MessageAppended::new(UserMessage::text("x", SystemClock.now())).into();
    let created = TaskCreated::new("x", SessionId::parse("s").unwrap());
    let said = std::iter::repeat_with(message).take(usize::try_from(LAG_EVENTS_MAX).unwrap() + 1);
    let events: Vec<EventBody> = [created.into()].into_iter().chain(said).collect();
    let count = events.len() as u64;
    written(&server, "t", events).await;
    let mut event_stream =
        EventStream::open(server.address, &format!("{EVENTS}?after=0"), "").await;
    let (mut lags, mut ids) = (Vec::new(), Vec::new());
    while ids.last() != Some(&count) {
        let said = event_stream.next().await.unwrap();
        match said.kind.as_str() {
            "lag" => {
                assert_eq!(said.id, 0, "it is no place to come back to");
                lags.push((said.data["behind"].as_u64().unwrap(), said.data["position"].clone()));
            }
            _ => ids.push(said.id),
        }
    }
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    assert_eq!(lags, [(count - 1, json!(1))]);
    server.ended().await;
}

#[tokio::test]
async fn deltas_come_after_the_creation_of_their_task_and_before_the_whole_message() {
    let server = TestServer::new().await;
    let path = format!("{EVENTS}?deltas=true");
    for _ in 0..8 {
        let mut event_stream = EventStream::open(server.address, &path, "").await;
        let task_id = accepted(&server, "a look").await;
        let received = until_end(&mut event_stream, &task_id).await;
        let of_task = |event: &&StreamedEvent| event.data["task_id"] == json!(task_id);
        let received: Vec<&StreamedEvent> = received.iter().filter(of_task).collect();
        assert_eq!(received[0].kind, "task_created");
        let mut text = String::new();
        let mut pieces = 0;
        for said in received {
            if said.kind == "delta" {
                assert_eq!(said.id, 0, "no client can resume from it");
                pieces += 1;
                if said.data["type"] == "text_delta" {
                    text.push_str(said.data["data"]["delta"].as_str().unwrap());
                }
            } else if said.data["data"]["message"]["type"] == "assistant" {
                let whole = said.data["data"]["message"]["content"][0]["text"].as_str().unwrap();
                assert!(whole.starts_with(&text), "{text:?} is no piece of {whole:?}");
                text.clear();
            }
        }
        assert!(pieces > 0);
        assert_eq!(text, "", "no piece comes behind the whole");
    }
    server.ended().await;
}

#[tokio::test]
async fn the_stream_of_a_task_sends_its_own_deltas_on_request() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut with = EventStream::open(server.address, &format!("{path}?deltas=true"), "").await;
    let without = EventStream::open(server.address, &path, "").await;
    loop {
        let said = with.next().await.unwrap();
        if said.data["data"]["status"] == "input_required" {
            break;
        }
    }
    let other = accepted(&server, "other").await;
    server.orchestrator.wait(&other).await.unwrap();
    let approvals = get(server.address, "/v1/approvals").await.json();
    let id = approvals["approvals"][0]["approval_id"].as_str().unwrap().to_owned();
    let allow = json!({"decision": "allow_once"});
    assert_eq!(post(server.address, &format!("/v1/approvals/{id}"), &allow).await.status, 200);
    let received = with.all().await;
    let text: String = received
        .iter()
        .filter(|said| said.kind == "delta" && said.data["type"] == "text_delta")
        .map(|said| said.data["data"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Done with act");
    let strange = |said: &&StreamedEvent| said.data["task_id"] != json!(task_id);
    assert_eq!(received.iter().find(strange), None);
    assert!(without.all().await.iter().all(|said| said.kind != "delta"));
    server.ended().await;
}

#[tokio::test]
async fn a_stream_that_is_opened_in_the_middle_of_an_answer_begins_with_its_beginning() {
    let server = TestServer::new().await;
    let mut first = EventStream::open(server.address, &format!("{EVENTS}?deltas=true"), "").await;
    let task_id = accepted(&server, "half an answer").await;
    let delta = |said: &StreamedEvent| said.data["type"] == "text_delta";
    let mut text = String::new();
    while text != "Half an answer of a model that stalls" {
        let said = first.next().await.unwrap();
        if delta(&said) {
            text.push_str(said.data["data"]["delta"].as_str().unwrap());
        }
    }
    for path in [format!("/v1/tasks/{task_id}/events?"), format!("{EVENTS}?root={task_id}&")] {
        let mut joined = EventStream::open(server.address, &format!("{path}deltas=true"), "").await;
        let said = loop {
            let said = joined.next().await.unwrap();
            if delta(&said) {
                break said;
            }
        };
        assert_eq!(said.data["data"]["delta"], text.as_str(), "{path}");
        assert_eq!(said.data.get("text_at"), None);
    }
    server.orchestrator.cancel(&task_id).await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn the_stream_of_the_journal_ends_at_shutdown() {
    let mut server = TestServer::new().await;
    let mut event_stream = EventStream::open(server.address, EVENTS, "").await;
    let task_id = accepted(&server, "hang").await;
    while event_stream.next().await.unwrap().kind != "tool_started" {}
    server.stop();
    assert_eq!(event_stream.all().await, []);
    server.orchestrator.cancel(&task_id).await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn a_page_of_the_journal_ends_where_the_journal_ends() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "one").await;
    server.orchestrator.wait(&task_id).await.unwrap();
    let (mut after, mut positions) = (0, Vec::new());
    loop {
        let path = format!("/v1/journal?task_id={task_id}&after={after}&limit=2");
        let page = get(server.address, &path).await.json();
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 2, "{page}");
        assert!(events.iter().all(|event| event["task_id"] == json!(task_id)), "{page}");
        positions.extend(events.iter().map(|event| event["position"].as_u64().unwrap()));
        if events.is_empty() {
            break;
        }
        after = page["next"].as_u64().unwrap();
    }
    let head = server.orchestrator.head().await.unwrap();
    assert_eq!(positions, (1..=head.0).collect::<Vec<_>>());
    for (query, status) in
        [("task_id=none", 404), ("limit=1001", 400), ("limit=0", 400), ("after=x", 400)]
    {
        let reply = get(server.address, &format!("/v1/journal?{query}")).await;
        assert_eq!(reply.status, status, "{query}: {reply:?}");
    }
    let beyond = get(server.address, &format!("/v1/journal?after={}", u64::MAX)).await.json();
    assert_eq!((&beyond["events"], &beyond["head"]), (&json!([]), &json!(head.0)));
    server.ended().await;
}
