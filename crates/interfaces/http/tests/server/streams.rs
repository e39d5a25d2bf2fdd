//! Events come as they were and as they go on: nothing twice, nothing left out.

use std::time::Duration;

use antiphon_interface_transport::Limits;
use serde_json::json;

use crate::client::{Hearing, Said, get, order, request, say};
use crate::tasks::accepted;
use crate::world::Served;

#[tokio::test]
async fn a_stream_tells_everything_and_ends_behind_the_end() {
    let served = Served::new().await;
    let task_id = accepted(&served, "a look").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let said = Hearing::open(served.address, &path, "").await.all().await;
    let ids: Vec<u64> = said.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=said.len() as u64).collect::<Vec<_>>());
    for Said { id, kind, data } in &said {
        assert_eq!((&data["seq"], &data["type"]), (&json!(id), &json!(kind)));
        assert_eq!(data["task_id"], json!(task_id));
    }
    assert_eq!(said[0].kind, "task_created");
    assert_eq!(said.last().unwrap().data["data"]["status"], "completed");
    served.ended().await;
}

#[tokio::test]
async fn whoever_comes_back_misses_nothing_and_hears_nothing_twice() {
    let served = Served::new().await;
    let task_id = accepted(&served, "a look").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let all = Hearing::open(served.address, &path, "").await.all().await;
    for seen in 0..all.len() {
        let header = format!("last-event-id: {seen}\r\n");
        let heard = Hearing::open(served.address, &format!("{path}?after=0"), &header).await;
        assert_eq!(heard.all().await, all[seen..], "the header counts");
        let heard = Hearing::open(served.address, &format!("{path}?after={seen}"), "").await;
        assert_eq!(heard.all().await, all[seen..]);
    }
    let end = get(served.address, &format!("{path}?after={}", all.len())).await;
    assert_eq!((end.status, end.body.as_str()), (204, ""));
    for bad in [format!("{path}?after={}", all.len() + 1), format!("{path}?after=x")] {
        let reply = get(served.address, &bad).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"));
    }
    let bad = request(served.address, "GET", &path, None);
    let bad = bad.replacen("\r\n", "\r\nlast-event-id: x\r\n", 1);
    assert_eq!(say(served.address, &bad).await.status, 400);
    served.ended().await;
}

#[tokio::test]
async fn a_client_that_is_cut_off_again_and_again_hears_it_all_once() {
    let served = Served::new().await;
    let task_id = accepted(&served, "act").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut heard: Vec<Said> = Vec::new();
    let mut allowed = false;
    loop {
        let last = heard.last().map_or(0, |event| event.id);
        let header = format!("last-event-id: {last}\r\n");
        let mut hearing = Hearing::open(served.address, &path, &header).await;
        let Some(event) = hearing.next().await else { break };
        let ended = event.data["data"]["status"] == "completed";
        let asked =
            event.kind == "status_changed" && event.data["data"]["status"] == "input_required";
        heard.push(event);
        if ended {
            break;
        }
        if asked && !allowed {
            allowed = true;
            let id =
                get(served.address, "/v1/approvals").await.json()["approvals"][0]["approval_id"]
                    .clone();
            let path = format!("/v1/approvals/{}", id.as_str().unwrap());
            let reply =
                crate::client::post(served.address, &path, &json!({"decision": "allow_task"}))
                    .await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
    assert!(allowed);
    let whole = Hearing::open(served.address, &path, "").await.all().await;
    assert_eq!(heard, whole);
    served.ended().await;
}

#[tokio::test]
async fn a_stream_with_nothing_to_say_says_so() {
    let heartbeat = Duration::from_millis(20);
    let served = Served::with(Limits { heartbeat, ..Limits::default() }).await;
    let task_id = accepted(&served, "hang").await;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut hearing = Hearing::open(served.address, &path, "").await;
    while hearing.next().await.unwrap().kind != "tool_started" {}
    // Nothing more comes of its own accord: only the heart beats.
    let silence = tokio::time::timeout(Duration::from_millis(500), hearing.next()).await;
    assert!(silence.is_err());
    assert!(hearing.comments > 2, "{}", hearing.comments);
    order(served.address, &format!("/v1/tasks/{task_id}/cancel")).await;
    let rest = hearing.all().await;
    assert_eq!(rest.last().unwrap().data["data"]["status"], "canceled");
    served.ended().await;
}
