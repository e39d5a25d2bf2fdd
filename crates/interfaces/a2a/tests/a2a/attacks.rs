//! What must not work.

use antiphon_a2a_api::ExposedAgents;
use antiphon_core::AgentName;
use antiphon_test_server::TOKEN;
use serde_json::{Value, json};

use crate::world::{World, error, message, request};

#[tokio::test]
async fn strangers_foreign_hosts_and_pages_are_refused() {
    let world = World::new().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    let text = request("POST", "/a2a/helper", "a2a-version: 1.0\r\n", Some(&body));
    let token = format!("authorization: Bearer {TOKEN}");
    for (from, to, status) in [
        (token.as_str(), "x-not: there", 401),
        (token.as_str(), "authorization: Bearer 00000000000000000000000000000000", 401),
        ("host: localhost", "host: evil.example", 403),
        ("a2a-version", "origin: https://evil.example\r\na2a-version", 403),
    ] {
        let reply = world.raw(&text.replacen(from, to, 1)).await;
        assert_eq!(reply.status, status, "{to}: {reply:?}");
        let reason = if status == 401 { "UNAUTHENTICATED" } else { "PERMISSION_DENIED" };
        assert_eq!(error(&reply.json()), (-32000, reason.to_owned()), "{reply:?}");
        let http = request("GET", "/a2a/helper/tasks", "a2a-version: 1.0\r\n", None);
        let reply = world.raw(&http.replacen(from, to, 1)).await;
        assert_eq!(reply.status, status, "{to}: {reply:?}");
        let body = &reply.json()["error"];
        assert_eq!((&body["code"], &body["status"]), (&json!(status), &json!(reason)));
        assert_eq!(body["details"][0]["reason"], reason, "{reply:?}");
    }
    let card = request("GET", "/.well-known/agent-card.json", "", None);
    let reply = world.raw(&card.replacen(&token, "x-not: there", 1)).await;
    assert_eq!(reply.status, 401, "the user has listed no agent: {reply:?}");
    world.ended().await;
}

#[tokio::test]
async fn a_hidden_agent_is_as_one_that_does_not_exist() {
    let names = vec![AgentName::parse("helper").unwrap()];
    let world = World::with(ExposedAgents::Listed(names), &[]).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    let hidden = world.http("POST", "/a2a/other", Some(&body)).await;
    let absent = world.http("POST", "/a2a/nobody", Some(&body)).await;
    assert_eq!((hidden.status, &hidden.body), (404, &absent.body));
    let card = world.http("GET", "/a2a/other/.well-known/agent-card.json", None).await;
    assert_eq!(card.status, 404);
    let none = World::with(ExposedAgents::Listed(Vec::new()), &[]).await;
    assert_eq!(none.http("GET", "/.well-known/agent-card.json", None).await.status, 404);
    none.ended().await;
    world.ended().await;
}

#[tokio::test]
async fn tasks_of_another_agent_are_not_found() {
    let world = World::new().await;
    let task = world.task("m1", "hello").await;
    let path = format!("/a2a/other/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(world.http("GET", &path, None).await.status, 404);
    let mut params = message("m2", "hello");
    params["message"]["contextId"] = task["contextId"].clone();
    let reply = world.http("POST", "/a2a/other/message:send", Some(&params)).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    world.ended().await;
}

#[tokio::test]
async fn malformed_requests_and_batches_are_refused() {
    let world = World::new().await;
    let call = |body: &str| {
        format!(
            "POST /a2a/helper HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\na2a-version: 1.0\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" }]).to_string();
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        (deep.as_str(), -32700),
        (batch.as_str(), -32600),
        ("[]", -32600),
        ("1", -32600),
        (r#"{"jsonrpc":"2.0","method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, -32602),
    ] {
        let reply = world.raw(&call(body)).await;
        assert_eq!(reply.status, 200, "{body}: {reply:?}");
        assert_eq!(error(&reply.json()).0, code, "{body}");
    }
    world.ended().await;
}

#[tokio::test]
async fn oversized_messages_are_refused() {
    let world = World::new().await;
    let parts: Vec<Value> = (0..300).map(|_| json!({ "text": "x" })).collect();
    let mut params = message("m1", "");
    params["message"]["parts"] = json!(parts);
    assert_eq!(error(&world.rpc("SendMessage", params).await).0, -32602);
    let head = format!(
        "POST /a2a/helper HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: \
         application/json\r\ncontent-length: 999999999\r\n\r\n"
    );
    assert_eq!(world.raw(&head).await.status, 413);
    world.ended().await;
}

#[tokio::test]
async fn a_file_by_reference_is_not_fetched() {
    let world = World::new().await;
    let mut params = message("m1", "");
    params["message"]["parts"] = json!([{ "url": "http://169.254.169.254/latest" }]);
    let reply = world.rpc("SendMessage", params).await;
    let text = &reply["result"]["task"]["artifacts"][0]["parts"][0]["text"];
    assert_eq!(text, "You said File: http://169.254.169.254/latest");
    world.ended().await;
}
