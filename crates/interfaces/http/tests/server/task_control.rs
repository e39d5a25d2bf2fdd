//! Orders to tasks, and answers to their questions.

use antiphon_core::{EventBody, Position, TaskId, TaskStatus};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Reply, get, order, post, request};
use crate::tasks::accepted;
use crate::world::TestServer;

/// Waits until the journal has an event of this type for the task.
pub(crate) async fn until(server: &TestServer, task_id: &TaskId, kind: &str) {
    let mut events = server.orchestrator.follow(Some(task_id.clone()), Position(0));
    while events.next().await.unwrap().body.event_type() != kind {}
}

#[tokio::test]
async fn a_task_is_canceled_once() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "hang").await;
    until(&server, &task_id, "tool_started").await;
    let path = format!("/v1/tasks/{task_id}/cancel");
    let reply = order(server.address, &path).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("canceled")));
    let again = order(server.address, &path).await;
    assert_eq!((again.status, again.code().as_str()), (409, "CONFLICT"));
    let shown = get(server.address, &format!("/v1/tasks/{task_id}")).await.json();
    assert_eq!((&shown["status"], shown.get("result")), (&json!("canceled"), None));
    server.ended().await;
}

#[tokio::test]
async fn a_task_is_paused_and_resumed() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    until(&server, &task_id, "approval_requested").await;
    let reply = order(server.address, &format!("/v1/tasks/{task_id}/pause")).await;
    assert_eq!((reply.status, &reply.json()["waiting_for"]), (200, &json!("resume")));
    let reply = order(server.address, &format!("/v1/tasks/{task_id}/resume")).await;
    assert_eq!((reply.status, &reply.json()["waiting_for"]), (200, &json!("approval")));
    server.orchestrator.cancel(&task_id).await.unwrap();
    for verb in ["pause", "resume", "messages"] {
        let path = format!("/v1/tasks/{task_id}/{verb}");
        let reply = post(server.address, &path, &json!({"text": "hi"})).await;
        let refused = (409, "CONFLICT".to_owned());
        // A task that has ended is resumed in vain, and says so.
        assert_eq!((reply.status, reply.code()), refused, "{verb}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_turn_is_interrupted_and_its_tool_has_ended() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "hang").await;
    until(&server, &task_id, "tool_started").await;
    let path = format!("/v1/tasks/{task_id}/interrupt");
    for _ in 0..2 {
        let reply = order(server.address, &path).await;
        let interrupted = reply.json();
        assert_eq!(reply.status, 200, "{interrupted}");
        assert_eq!(interrupted["status"], "input_required", "{interrupted}");
        assert_eq!(interrupted["waiting_for"], "resume", "{interrupted}");
    }
    // The call has a result before the answer came, and runs once.
    let state = server.orchestrator.task(&task_id).await.unwrap();
    assert!(state.started.is_empty(), "{:?}", state.started);
    assert!(format!("{:?}", state.messages()).contains("a person stopped the turn"));
    server.orchestrator.cancel(&task_id).await.unwrap();
    let reply = order(server.address, &path).await;
    assert_eq!((reply.status, reply.code().as_str()), (409, "CONFLICT"));
    let missing = order(server.address, "/v1/tasks/none/interrupt").await;
    assert_eq!(missing.status, 404);
    server.ended().await;
}

#[tokio::test]
async fn a_message_to_a_task_is_read() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    until(&server, &task_id, "approval_requested").await;
    let path = format!("/v1/tasks/{task_id}/messages");
    let reply = post(server.address, &path, &json!({"text": "by the way", "mode": "steer"})).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    assert!(reply.json()["interaction_id"].is_string());
    for bad in [json!({}), json!({"text": " "}), json!({"text": "x", "mode": "shout"})] {
        assert_eq!(post(server.address, &path, &bad).await.status, 400, "{bad}");
    }
    let approval = get(server.address, "/v1/approvals").await.json()["approvals"][0].clone();
    let path = format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
    assert_eq!(post(server.address, &path, &json!({"decision": "allow_once"})).await.status, 200);
    let state = server.orchestrator.wait(&task_id).await.unwrap();
    assert_eq!(state.detail, Some(json!("Done with by the way")));
    server.ended().await;
}

#[tokio::test]
async fn approvals_are_listed_page_by_page_and_one_is_shown() {
    let server = TestServer::new().await;
    for _ in 0..3 {
        let task_id = accepted(&server, "act").await;
        until(&server, &task_id, "approval_requested").await;
    }
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let approvals = page["approvals"].as_array().unwrap().iter();
        approvals.map(|approval| approval["approval_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = get(server.address, "/v1/approvals").await.json();
    let first = get(server.address, "/v1/approvals?limit=2").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let path = format!("/v1/approvals?limit=2&cursor={cursor}");
    let last = get(server.address, &path).await.json();
    assert!(last["next_cursor"].is_null(), "{last}");
    assert_eq!([ids(&first), ids(&last)].concat(), ids(&all));
    let path = format!("/v1/approvals/{}", ids(&all)[1]);
    assert_eq!(get(server.address, &path).await.json(), all["approvals"][1]);
    let denied = post(server.address, &path, &json!({"decision": "deny"})).await.json();
    assert_eq!(get(server.address, &path).await.json(), denied, "a decided one is shown, too");
    for unknown in ["/v1/approvals?cursor=none", "/v1/approvals?limit=1001"] {
        assert_eq!(get(server.address, unknown).await.status, 400, "{unknown}");
    }
    assert_eq!(get(server.address, "/v1/approvals/none").await.status, 404);
    server.ended().await;
}

#[tokio::test]
async fn an_approval_is_decided_once() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    until(&server, &task_id, "approval_requested").await;
    let listed = get(server.address, "/v1/approvals").await.json();
    assert_eq!(listed["approvals"][0]["task_id"], json!(task_id));
    assert_eq!(listed["approvals"][0]["status"], "pending");
    let id = listed["approvals"][0]["approval_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/approvals/{id}");
    let expire = post(server.address, &path, &json!({"decision": "expire"})).await;
    assert_eq!((expire.status, expire.code().as_str()), (400, "INVALID_REQUEST"));
    let reply = post(server.address, &path, &json!({"decision": "deny", "comment": "No."})).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("denied")));
    assert_eq!(reply.json()["by"], "http");
    let again = post(server.address, &path, &json!({"decision": "allow_once"})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "CONFLICT"));
    let state = server.orchestrator.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(get(server.address, "/v1/approvals").await.json(), json!({"approvals": []}));
    let all = get(server.address, "/v1/approvals?all=true").await.json();
    assert_eq!(all["approvals"][0]["decision"], "deny");
    server.ended().await;
}

#[tokio::test]
async fn a_question_is_answered_with_its_choices_and_the_task_shows_its_list() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "which color").await;
    until(&server, &task_id, "approval_requested").await;
    server.orchestrator.wait(&task_id).await.unwrap();
    let approval = get(server.address, "/v1/approvals").await.json()["approvals"][0].clone();
    let question = json!({
        "kind": "choice", "text": "Which color?", "choices": [{"label": "Red"}, {"label": "Blue"}],
    });
    assert_eq!(approval["question"], question, "{approval}");
    let path = format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
    for bad in [
        json!({"decision": "allow_once"}),
        json!({"decision": "allow_always", "answer": {"choices": ["Red"]}}),
        json!({"decision": "allow_once", "answer": {"choices": ["Green"]}}),
        json!({"decision": "allow_once", "answer": {"choices": ["Red", "Blue"]}}),
        json!({"decision": "allow_once", "answer": {"text": "Green"}}),
        json!({"decision": "allow_once", "answer": {"choice": "Red"}}),
        json!({"decision": "deny", "answer": {"choices": ["Red"]}}),
    ] {
        let reply = post(server.address, &path, &bad).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    let answer = json!({"choices": ["Blue"]});
    let reply =
        post(server.address, &path, &json!({"decision": "allow_once", "answer": answer})).await;
    assert_eq!((reply.status, &reply.json()["answer"]), (200, &answer));
    server.orchestrator.wait(&task_id).await.unwrap();
    let task = get(server.address, &format!("/v1/tasks/{task_id}")).await.json();
    assert_eq!(task["result"], "The user chose: Blue", "{task}");
    assert_eq!(task["todo"], json!([{"text": "ask", "status": "in_progress"}]), "{task}");
    server.ended().await;
}

#[tokio::test]
async fn a_task_that_plans_first_shows_its_plan_and_what_became_of_it() {
    let server = TestServer::new().await;
    let body = json!({"message": "make a plan", "plan": true});
    let reply = post(server.address, "/v1/tasks", &body).await;
    let task_id = TaskId::parse(reply.json()["task_id"].as_str().unwrap()).unwrap();
    until(&server, &task_id, "approval_requested").await;
    let shown = || async { get(server.address, &format!("/v1/tasks/{task_id}")).await.json() };
    let task = shown().await;
    let proposed = json!({"text": "1. Act.", "status": "proposed"});
    assert_eq!((&task["plan"], &task["access"]), (&proposed, &json!("plan_first")), "{task}");
    let approval = get(server.address, "/v1/approvals").await.json()["approvals"][0].clone();
    assert_eq!(approval["question"], json!({"kind": "plan", "plan": "1. Act."}), "{approval}");
    let path = format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
    let changed = json!({"decision": "allow_once", "answer": {"text": "1. Look."}});
    assert_eq!(post(server.address, &path, &changed).await.status, 200);
    server.orchestrator.wait(&task_id).await.unwrap();
    let task = shown().await;
    let accepted = json!({"text": "1. Look.", "status": "accepted"});
    assert_eq!((&task["plan"], &task["access"]), (&accepted, &json!(null)), "{task}");
    server.ended().await;
}

#[tokio::test]
async fn a_client_runs_its_own_tool_and_returns_the_result() {
    let server = TestServer::new().await;
    let tool =
        json!({"name": "weather", "description": "Looks up.", "parameters": {"type": "object"}});
    let body = json!({"message": "weather", "external_tools": [tool]});
    let reply = post(server.address, "/v1/tasks", &body).await;
    let task_id = TaskId::parse(reply.json()["task_id"].as_str().unwrap()).unwrap();
    let mut events = server.orchestrator.follow(Some(task_id.clone()), Position(0));
    let requested = loop {
        if let EventBody::ToolRequested(requested) = events.next().await.unwrap().body {
            break requested;
        }
    };
    assert_eq!(
        (requested.tool_name.as_str(), requested.arguments.as_str()),
        ("weather", r#"{"in":"Rome"}"#)
    );
    let path = format!("/v1/tasks/{task_id}/tool_results");
    for bad in [json!({"content": "x"}), json!({"tool_call_id": "c", "content": 5})] {
        assert_eq!(post(server.address, &path, &bad).await.status, 400, "{bad}");
    }
    let unknown = json!({"tool_call_id": "unknown", "content": ""});
    assert_eq!(post(server.address, &path, &unknown).await.status, 404);
    let long = json!({"tool_call_id": requested.tool_call_id, "content": "x".repeat(2_000_000)});
    assert_eq!(post(server.address, &path, &long).await.status, 400);
    let blocks = [json!({"type": "text", "text": "sunny"})];
    let result = json!({"tool_call_id": requested.tool_call_id, "content": blocks});
    assert_eq!(post(server.address, &path, &result).await.status, 200);
    let state = server.orchestrator.wait(&task_id).await.unwrap();
    assert_eq!(state.detail, Some(json!("sunny")));
    assert_eq!(post(server.address, &path, &result).await.status, 409, "it has ended");
    server.ended().await;
}

#[tokio::test]
async fn waiting_for_a_task_ends_when_it_ends_or_is_suspended() {
    let server = TestServer::new().await;
    let hangs = accepted(&server, "hang").await;
    let path = format!("/v1/tasks/{hangs}/rest");
    let reply = get(server.address, &format!("{path}?wait_s=1")).await;
    assert_eq!((reply.status, &reply.json()["rests"]), (200, &json!(false)));
    for bad in ["0", "31", "soon"] {
        let reply = get(server.address, &format!("{path}?wait_s={bad}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    let (reply, canceled) =
        tokio::join!(get(server.address, &path), server.orchestrator.cancel(&hangs));
    canceled.unwrap();
    assert_eq!(
        (&reply.json()["rests"], &reply.json()["status"]),
        (&json!(true), &json!("canceled"))
    );
    let asks = accepted(&server, "act").await;
    let reply = get(server.address, &format!("/v1/tasks/{asks}/rest")).await.json();
    assert_eq!((&reply["rests"], &reply["waiting_for"]), (&json!(true), &json!("approval")));
    assert_eq!(get(server.address, "/v1/tasks/nobody/rest").await.status, 404);
    server.ended().await;
}

#[tokio::test]
async fn waiting_for_a_task_ends_when_the_server_shuts_down() {
    let mut server = TestServer::new().await;
    let task_id = accepted(&server, "hang").await;
    let path = format!("/v1/tasks/{task_id}/rest");
    let address = server.address;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request(address, "GET", &path, None).as_bytes()).await.unwrap();
    // Connections are taken in order: this one is answered behind that one.
    assert_eq!(get(address, "/health/live").await.status, 200);
    server.stop();
    let mut received = String::new();
    socket.read_to_string(&mut received).await.unwrap();
    let reply = Reply::read(&received);
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    server.ended().await;
}
