//! Clients that go away, and clients that come back.

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskStatus};
use serde_json::json;

use crate::client::{Reply, begin, hear, rest};
use crate::openai::{body, with};
use crate::world::Served;

async fn only_task(served: &Served) -> TaskId {
    let query = TaskQuery { which: TaskSelector::All, limit: 10.try_into().unwrap() };
    let mut tasks = served.orchestrator.tasks(query).await.unwrap();
    assert_eq!(tasks.len(), 1);
    tasks.remove(0).task_id
}

async fn status(served: &Served) -> TaskStatus {
    let task_id = only_task(served).await;
    served.orchestrator.wait(&task_id).await.unwrap().status
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_takes_its_model_call_with_it() {
    let served = Served::new().await;
    let mut socket = begin(&served, "", &with("stall", &json!({ "stream": true }))).await;
    hear(&mut socket, "One moment").await;
    served.under_way(1).await;
    drop(socket);
    served.under_way(0).await;
    assert_eq!(status(&served).await, TaskStatus::Canceled);
    served.ended().await;
}

#[tokio::test]
async fn a_client_that_waits_for_a_whole_answer_may_leave_too() {
    let served = Served::new().await;
    let socket = begin(&served, "", &body("mute")).await;
    served.under_way(1).await;
    drop(socket);
    served.under_way(0).await;
    assert_eq!(status(&served).await, TaskStatus::Canceled);
    served.ended().await;
}

#[tokio::test]
async fn a_task_goes_on_without_its_client_if_that_is_asked_for() {
    for header in ["x-antiphon-continue: true\r\n", "idempotency-key: k\r\n"] {
        for stream in [true, false] {
            let served = Served::new().await;
            let socket = begin(&served, header, &with("slow", &json!({ "stream": stream }))).await;
            served.under_way(1).await;
            drop(socket);
            assert_eq!(status(&served).await, TaskStatus::Completed);
            served.ended().await;
        }
    }
}

#[tokio::test]
async fn the_same_key_is_the_same_answer_and_the_model_is_asked_once() {
    let served = Served::new().await;
    let key = "idempotency-key: k\r\n";
    let first = begin(&served, key, &body("slow")).await;
    let second = begin(&served, key, &body("slow")).await;
    let (first, second): (Reply, Reply) = (rest(first).await, rest(second).await);
    let third = rest(begin(&served, key, &with("slow", &json!({ "stream": true }))).await).await;
    assert_eq!(first.json()["choices"], second.json()["choices"]);
    assert_eq!((first.task(), first.task()), (second.task(), third.task()));
    assert_eq!(crate::streams::content(&third.chunks()), "At last.");
    assert_eq!(served.asked().len(), 1);
    served.ended().await;
}

/// What comes next when they join is not the beginning.
#[tokio::test]
async fn a_client_that_comes_back_in_the_middle_of_an_answer_is_told_all_of_it() {
    let served = Served::new().await;
    let (key, streamed) = ("idempotency-key: k\r\n", with("tale", &json!({ "stream": true })));
    let mut first = begin(&served, key, &streamed).await;
    hear(&mut first, "Once upon").await;
    let again = begin(&served, key, &streamed).await;
    let whole = begin(&served, key, &body("tale")).await;
    drop(first);
    let (again, whole) = (rest(again).await, rest(whole).await);
    let all = "Once upon a time. The end.";
    assert_eq!(crate::streams::content(&again.chunks()), all);
    assert_eq!(whole.json()["choices"][0]["message"]["content"], all);
    assert_eq!(served.asked().len(), 1);
    served.ended().await;
}

#[tokio::test]
async fn a_task_that_somebody_else_cancels_is_gone() {
    let served = Served::new().await;
    let socket = begin(&served, "", &body("mute")).await;
    served.under_way(1).await;
    served.orchestrator.cancel(&only_task(&served).await).await.unwrap();
    let reply = rest(socket).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (410, &json!("canceled")));
    served.ended().await;
}

#[tokio::test]
async fn a_server_that_ends_says_so_and_leaves_nothing_behind() {
    let mut served = Served::new().await;
    let whole = begin(&served, "", &body("mute")).await;
    served.under_way(1).await;
    served.stop();
    let reply = rest(whole).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (503, &json!("closing")));
    served.under_way(0).await;
    assert_eq!(status(&served).await, TaskStatus::Canceled);
    served.ended().await;
}
