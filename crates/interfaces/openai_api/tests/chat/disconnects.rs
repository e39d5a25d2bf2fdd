//! Clients that go away, and clients that come back.

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskStatus};
use serde_json::json;

use crate::client::{Reply, begin, hear, request, rest};
use crate::openai::{body, with};
use crate::world::TestServer;

async fn only_task(server: &TestServer) -> TaskId {
    let query = TaskQuery { which: TaskSelector::All, limit: 10.try_into().unwrap() };
    let mut tasks = server.orchestrator.tasks(query).await.unwrap();
    assert_eq!(tasks.len(), 1);
    tasks.remove(0).task_id
}

async fn status(server: &TestServer) -> TaskStatus {
    let task_id = only_task(server).await;
    server.orchestrator.wait(&task_id).await.unwrap().status
}

#[tokio::test]
async fn a_disconnected_stream_cancels_its_model_call() {
    let server = TestServer::new().await;
    let mut socket = begin(&server, "", &with("stall", &json!({ "stream": true }))).await;
    hear(&mut socket, "One moment").await;
    server.under_way(1).await;
    drop(socket);
    server.under_way(0).await;
    assert_eq!(status(&server).await, TaskStatus::Canceled);
    server.ended().await;
}

#[tokio::test]
async fn a_disconnected_request_cancels_its_model_call() {
    let server = TestServer::new().await;
    let socket = begin(&server, "", &body("mute")).await;
    server.under_way(1).await;
    drop(socket);
    server.under_way(0).await;
    assert_eq!(status(&server).await, TaskStatus::Canceled);
    server.ended().await;
}

#[tokio::test]
async fn a_task_continues_without_its_client_on_request() {
    for header in ["x-antiphon-continue: true\r\n", "idempotency-key: k\r\n"] {
        for stream in [true, false] {
            let server = TestServer::new().await;
            let socket = begin(&server, header, &with("slow", &json!({ "stream": stream }))).await;
            server.under_way(1).await;
            drop(socket);
            assert_eq!(status(&server).await, TaskStatus::Completed);
            server.ended().await;
        }
    }
}

#[tokio::test]
async fn the_same_key_returns_the_same_completion_of_one_model_call() {
    let server = TestServer::new().await;
    let key = "idempotency-key: k\r\n";
    let first = begin(&server, key, &body("slow")).await;
    let second = begin(&server, key, &body("slow")).await;
    let (first, second): (Reply, Reply) = (rest(first).await, rest(second).await);
    let third = rest(begin(&server, key, &with("slow", &json!({ "stream": true }))).await).await;
    assert_eq!(first.json()["choices"], second.json()["choices"]);
    assert_eq!((first.task(), first.task()), (second.task(), third.task()));
    assert_eq!(crate::streams::content(&third.chunks()), "At last.");
    assert_eq!(server.requested().len(), 1);
    server.ended().await;
}

/// What comes next when they join is not the beginning.
#[tokio::test]
async fn a_client_that_reconnects_during_a_completion_gets_all_of_it() {
    let server = TestServer::new().await;
    let (key, streamed) = ("idempotency-key: k\r\n", with("tale", &json!({ "stream": true })));
    let mut first = begin(&server, key, &streamed).await;
    hear(&mut first, "Once upon").await;
    let again = begin(&server, key, &streamed).await;
    let whole = begin(&server, key, &body("tale")).await;
    drop(first);
    let (again, whole) = (rest(again).await, rest(whole).await);
    let all = "Once upon a time. The end.";
    assert_eq!(crate::streams::content(&again.chunks()), all);
    assert_eq!(whole.json()["choices"][0]["message"]["content"], all);
    assert_eq!(server.requested().len(), 1);
    server.ended().await;
}

#[tokio::test]
async fn a_task_that_another_caller_cancels_is_gone() {
    let server = TestServer::new().await;
    let socket = begin(&server, "", &body("mute")).await;
    server.under_way(1).await;
    server.orchestrator.cancel(&only_task(&server).await).await.unwrap();
    let reply = rest(socket).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (410, &json!("canceled")));
    server.ended().await;
}

#[tokio::test]
async fn a_shutdown_ends_completions_with_an_error_and_cancels_their_tasks() {
    let mut server = TestServer::new().await;
    let whole = begin(&server, "", &body("mute")).await;
    server.under_way(1).await;
    server.stop();
    let reply = rest(whole).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (503, &json!("closing")));
    server.under_way(0).await;
    assert_eq!(status(&server).await, TaskStatus::Canceled);
    server.ended().await;
}

/// The client leaves while the creation of its task is written.
async fn leaves_during_creation(text: &str) -> TaskStatus {
    let server = TestServer::new().await;
    server.journal.hold();
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let text = text.replacen("host: localhost", &format!("host: {}", server.address), 1);
    tokio::io::AsyncWriteExt::write_all(&mut socket, text.as_bytes()).await.unwrap();
    server.journal.until_held().await;
    drop(socket);
    // The server learns of the disconnect before the journal answers.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    server.journal.release();
    let query = || TaskQuery { which: TaskSelector::All, limit: 10.try_into().unwrap() };
    while server.orchestrator.tasks(query()).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let status = status(&server).await;
    server.ended().await;
    status
}

#[tokio::test]
async fn a_client_that_leaves_while_its_task_is_created_cancels_it_unless_it_continues() {
    let response = json!({ "model": "scripted/test", "input": "slow", "background": true });
    let response = response.to_string();
    let (chat, slow) = (crate::client::CHAT, body("slow").to_string());
    for (text, expected) in [
        (request("POST", chat, "idempotency-key: k\r\n", &slow), TaskStatus::Completed),
        (request("POST", chat, "x-antiphon-continue: true\r\n", &slow), TaskStatus::Completed),
        (request("POST", "/v1/responses", "", &response), TaskStatus::Completed),
        (request("POST", chat, "", &slow), TaskStatus::Canceled),
    ] {
        assert_eq!(leaves_during_creation(&text).await, expected, "{text}");
    }
}
