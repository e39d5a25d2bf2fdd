//! An agent that needs an approval tells its client, and continues after the decision.

use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{Approval, Decision, TaskStatus};
use serde_json::{Value, json};

use crate::client::{Reply, ask, begin, rest};
use crate::openai::{settled, with};
use crate::streams::content;
use crate::world::TestServer;

fn to(agent: &str, text: &str, more: &Value) -> Value {
    let mut body = with(text, more);
    body["model"] = json!(agent);
    body
}

fn look(more: &Value) -> Value {
    to("helper", "look", more)
}

async fn pending(server: &TestServer) -> Approval {
    let mut pending = server.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
    assert_eq!(pending.len(), 1, "{pending:?}");
    pending.remove(0)
}

fn named(reply: &Reply, approval: &Approval) {
    let error = &reply.json()["error"];
    assert_eq!((reply.status, &error["code"]), (403, &json!("approval_required")), "{error}");
    assert_eq!(error["type"], "permission_error");
    let text = error["message"].as_str().unwrap();
    for part in [approval.approval_id.as_str(), reply.task().as_str(), "`look`"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn a_client_is_told_at_once_and_its_task_continues_after_the_decision() {
    let server = TestServer::asking().await;
    let reply = ask(&server, &look(&json!({}))).await;
    let approval = pending(&server).await;
    named(&reply, &approval);
    assert_eq!(reply.task(), approval.task_id);
    let (id, by) = (&approval.approval_id, "a test");
    server.orchestrator.decide(id, Decision::AllowOnce, by, None).await.unwrap();
    let ended = server.orchestrator.wait(&approval.task_id).await.unwrap();
    assert_eq!(ended.status, TaskStatus::Completed, "the client was gone, the task was not");
    server.ended().await;
}

#[tokio::test]
async fn the_same_key_gets_the_same_notice_and_then_the_answer() {
    let server = TestServer::asking().await;
    let asked =
        async || rest(begin(&server, "idempotency-key: k\r\n", &look(&json!({}))).await).await;
    let first = asked().await;
    let approval = pending(&server).await;
    named(&first, &approval);
    named(&asked().await, &approval);
    let (id, by) = (&approval.approval_id, "a test");
    server.orchestrator.decide(id, Decision::AllowOnce, by, None).await.unwrap();
    let answer = settled(&asked().await);
    assert_eq!(answer["choices"][0]["message"]["content"], "Looking.\n\nYou said look");
    server.ended().await;
}

#[tokio::test]
async fn a_stream_has_the_text_before_the_call_and_ends_with_the_notice() {
    let server = TestServer::asking().await;
    let lines = ask(&server, &look(&json!({ "stream": true }))).await.lines();
    let approval = pending(&server).await;
    let (last, before) = lines.split_last().unwrap();
    let before: Vec<Value> =
        before.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(content(&before), "Looking.");
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "approval_required");
    assert!(error["error"]["message"].as_str().unwrap().contains(approval.approval_id.as_str()));
    server.ended().await;
}

#[tokio::test]
async fn a_canonical_client_gets_the_approval_in_the_details() {
    let server = TestServer::asking().await;
    let message = json!({ "id": "7f9c24e8-3b12-4fef-91e0-5f2d0e5a1c11", "role": "user",
        "content": "look", "timestamp": "2026-01-02T03:04:05Z" });
    let reply = ask(&server, &json!({ "model": "helper", "messages": [message] })).await;
    let approval = pending(&server).await;
    let body = reply.json();
    assert_eq!((reply.status, &body["code"]), (403, &json!("FORBIDDEN")), "{body}");
    assert_eq!(
        body["details"],
        json!({ "cause": "approval_required", "approval_id": approval.approval_id,
            "task_id": approval.task_id, "tool_name": "look", "reason": "It looks." })
    );
    server.ended().await;
}

#[tokio::test]
async fn a_client_is_told_of_a_descendants_approval_while_another_one_works() {
    let server = TestServer::asking().await;
    let reply = ask(&server, &to("boss", "delegate", &json!({}))).await;
    let approval = pending(&server).await;
    named(&reply, &approval);
    assert_ne!(reply.task(), approval.task_id, "it is the approval of a child");
    server.under_way(1).await;
    server.orchestrator.cancel(&reply.task()).await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn a_task_that_was_paused_before_tells_its_client_too() {
    let server = TestServer::asking().await;
    let asked = begin(&server, "", &to("helper", "later", &json!({}))).await;
    server.under_way(1).await;
    let limit = std::num::NonZeroUsize::MIN;
    let query = TaskQuery { which: TaskSelector::All, limit };
    let task = server.orchestrator.tasks(query).await.unwrap().remove(0).task_id;
    server.orchestrator.pause(&task).await.unwrap();
    let rests = server.orchestrator.wait(&task).await.unwrap();
    assert_eq!(rests.status, TaskStatus::InputRequired);
    server.orchestrator.resume(&task).await.unwrap();
    let reply = rest(asked).await;
    named(&reply, &pending(&server).await);
    server.ended().await;
}

/// Approvals that other tasks wait for are not read, however many there are.
#[tokio::test]
async fn a_request_reads_no_approvals_of_other_tasks() {
    let server = TestServer::asking().await;
    for _ in 0..20 {
        ask(&server, &look(&json!({}))).await;
    }
    server.journal.take_listed_approvals();
    settled(&ask(&server, &with("hello", &json!({}))).await);
    assert_eq!(server.journal.take_listed_approvals(), 0);
    let key = "idempotency-key: k\r\n";
    for _ in 0..2 {
        rest(begin(&server, key, &look(&json!({}))).await).await;
        assert_eq!(server.journal.take_listed_approvals(), 1, "its own");
    }
    server.ended().await;
}
