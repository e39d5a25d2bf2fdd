//! Which agents a client may name.

use serde_json::{Value, json};

use crate::client::{ask, request, say};
use crate::openai::with;
use crate::world::TestServer;

async fn listed(server: &TestServer) -> Vec<Value> {
    let listed = say(server, &request("GET", "/v1/models", "", "")).await.json();
    listed["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect()
}

#[tokio::test]
async fn an_agent_that_is_not_shown_is_as_one_that_does_not_exist() {
    let server = TestServer::showing(&["helper"]).await;
    assert_eq!(listed(&server).await, ["helper", "scripted/test"]);
    assert_eq!(ask(&server, &with("hello", &json!({ "model": "helper" }))).await.status, 200);
    for model in ["boss", "nobody"] {
        let reply = ask(&server, &with("hello", &json!({ "model": model }))).await;
        assert_eq!(reply.status, 404, "{reply:?}");
        let body = json!({ "model": model, "input": "hello" }).to_string();
        let reply = say(&server, &request("POST", "/v1/responses", "", &body)).await;
        assert_eq!(reply.status, 404, "{reply:?}");
        assert_eq!(reply.json()["error"]["code"], "model_not_found");
        let path = format!("/v1/models/{model}");
        assert_eq!(say(&server, &request("GET", &path, "", "")).await.status, 404);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_server_that_shows_no_agent_has_its_models() {
    let server = TestServer::showing(&[]).await;
    assert_eq!(listed(&server).await, ["scripted/test"]);
    assert_eq!(ask(&server, &with("hello", &json!({}))).await.status, 200);
    server.ended().await;
}
