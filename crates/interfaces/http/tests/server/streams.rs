//! Events come as they were and as they go on: nothing twice, nothing left out.

use std::time::Duration;

use antiphon_interface_transport::ServerLimits;
use serde_json::json;

use crate::client::{EventStream, StreamedEvent, get, order, request, say};
use crate::tasks::accepted;
use crate::world::TestServer;

#[tokio::test]
async fn a_stream_has_all_events_and_ends_after_the_last() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "a look").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let said = EventStream::open(server.address, &path, "").await.all().await;
    let ids: Vec<u64> = said.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=said.len() as u64).collect::<Vec<_>>());
    for StreamedEvent { id, kind, data } in &said {
        assert_eq!((&data["seq"], &data["type"]), (&json!(id), &json!(kind)));
        assert_eq!(data["task_id"], json!(task_id));
    }
    assert_eq!(said[0].kind, "task_created");
    assert_eq!(said.last().unwrap().data["data"]["status"], "completed");
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_reconnects_gets_each_event_once() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "a look").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let all = EventStream::open(server.address, &path, "").await.all().await;
    for seen in 0..all.len() {
        let header = format!("last-event-id: {seen}\r\n");
        let received = EventStream::open(server.address, &format!("{path}?after=0"), &header).await;
        assert_eq!(received.all().await, all[seen..], "the header counts");
        let received = EventStream::open(server.address, &format!("{path}?after={seen}"), "").await;
        assert_eq!(received.all().await, all[seen..]);
    }
    let end = get(server.address, &format!("{path}?after={}", all.len())).await;
    assert_eq!((end.status, end.body.as_str()), (204, ""));
    for bad in [format!("{path}?after={}", all.len() + 1), format!("{path}?after=x")] {
        let reply = get(server.address, &bad).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"));
    }
    let bad = request(server.address, "GET", &path, None);
    let bad = bad.replacen("\r\n", "\r\nlast-event-id: x\r\n", 1);
    assert_eq!(say(server.address, &bad).await.status, 400);
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_reconnects_many_times_gets_each_event_once() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut received: Vec<StreamedEvent> = Vec::new();
    let mut allowed = false;
    loop {
        let last = received.last().map_or(0, |event| event.id);
        let header = format!("last-event-id: {last}\r\n");
        let mut event_stream = EventStream::open(server.address, &path, &header).await;
        let Some(event) = event_stream.next().await else { break };
        let ended = event.data["data"]["status"] == "completed";
        let requested =
            event.kind == "status_changed" && event.data["data"]["status"] == "input_required";
        received.push(event);
        if ended {
            break;
        }
        if requested && !allowed {
            allowed = true;
            let id =
                get(server.address, "/v1/approvals").await.json()["approvals"][0]["approval_id"]
                    .clone();
            let path = format!("/v1/approvals/{}", id.as_str().unwrap());
            let reply =
                crate::client::post(server.address, &path, &json!({"decision": "allow_task"}))
                    .await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
    assert!(allowed);
    let whole = EventStream::open(server.address, &path, "").await.all().await;
    assert_eq!(received, whole);
    server.ended().await;
}

#[tokio::test]
async fn an_idle_stream_has_heartbeats() {
    let heartbeat = Duration::from_millis(20);
    let server = TestServer::with(ServerLimits { heartbeat, ..ServerLimits::default() }).await;
    let task_id = accepted(&server, "hang").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut event_stream = EventStream::open(server.address, &path, "").await;
    while event_stream.next().await.unwrap().kind != "tool_started" {}
    // Nothing more comes of its own accord: only the heart beats.
    let silence = tokio::time::timeout(Duration::from_millis(500), event_stream.next()).await;
    assert!(silence.is_err());
    assert!(event_stream.comments > 2, "{}", event_stream.comments);
    order(server.address, &format!("/v1/tasks/{task_id}/cancel")).await;
    let rest = event_stream.all().await;
    assert_eq!(rest.last().unwrap().data["data"]["status"], "canceled");
    server.ended().await;
}
