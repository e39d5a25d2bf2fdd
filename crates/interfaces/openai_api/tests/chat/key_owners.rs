//! Two callers with API keys: neither learns what the other one has asked for.

use serde_json::{Value, json};

use crate::client::{Reply, request, say};
use crate::world::{TOKEN, TestServer};

const RESPONSES: &str = "/v1/responses";

async fn ask_as(server: &TestServer, key: &str, method: &str, path: &str, body: &str) -> Reply {
    say(server, &request(method, path, "", body).replacen(TOKEN, key, 1)).await
}

async fn create_as(server: &TestServer, key: &str, text: &str, more: &Value) -> Reply {
    let mut body = json!({ "model": "scripted/test", "input": text });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    ask_as(server, key, "POST", RESPONSES, &body.to_string()).await
}

#[tokio::test]
async fn a_response_of_another_key_is_as_one_that_does_not_exist() {
    let server = TestServer::new().await;
    let [ada, eve] = server.keys.clone();
    let own = create_as(&server, &ada, "hello", &json!({})).await.json()["id"].clone();
    let own = own.as_str().unwrap();
    let absent = "resp_01970000-0000-7000-8000-000000000000";
    let told = |reply: &Reply, id: &str| (reply.status, reply.body.replace(id, "ID"));
    for (method, more) in [("GET", ""), ("POST", "/cancel"), ("GET", "/input_items")] {
        let path = |id: &str| format!("{RESPONSES}/{id}{more}");
        let hidden = ask_as(&server, &eve, method, &path(own), "").await;
        let none = ask_as(&server, &eve, method, &path(absent), "").await;
        assert_eq!(hidden.status, 404, "{hidden:?}");
        assert_eq!(told(&hidden, own), told(&none, absent), "{more}");
        assert_eq!(ask_as(&server, &ada, method, &path(own), "").await.status, 200, "{more}");
    }
    let behind = |id: &str| json!({ "previous_response_id": id });
    let hidden = create_as(&server, &eve, "more", &behind(own)).await;
    let none = create_as(&server, &eve, "more", &behind(absent)).await;
    assert_eq!(hidden.status, 404, "{hidden:?}");
    assert_eq!(told(&hidden, own), told(&none, absent));
    assert_eq!(create_as(&server, &ada, "more", &behind(own)).await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn a_conversation_of_another_key_is_as_a_new_one() {
    let server = TestServer::new().await;
    let [ada, eve] = server.keys.clone();
    let new = ask_as(&server, &ada, "POST", "/v1/conversations", "{}").await.json();
    let more = json!({ "conversation": new["id"] });
    for text in ["one", "two"] {
        assert_eq!(create_as(&server, &ada, text, &more).await.status, 200);
    }
    let messages = |server: &TestServer| server.requested().pop().unwrap().messages.len();
    assert_eq!(messages(&server), 3, "it continues its own");
    let other = create_as(&server, &eve, "three", &more).await;
    assert_eq!(other.status, 200, "{other:?}");
    assert_eq!(other.json()["conversation"]["id"], new["id"]);
    assert_eq!(messages(&server), 1, "nothing of the other key");
    create_as(&server, &eve, "four", &more).await;
    assert_eq!(messages(&server), 3, "it continues its own");
    create_as(&server, &ada, "five", &more).await;
    assert_eq!(messages(&server), 5, "nothing of the other key");
    server.ended().await;
}

#[tokio::test]
async fn a_response_that_is_not_stored_is_not_found_by_the_id_of_its_task() {
    let server = TestServer::new().await;
    let [ada, _] = server.keys.clone();
    let reply = create_as(&server, &ada, "hello", &json!({ "store": false })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let task = format!("resp_{}", reply.task());
    for id in [task.as_str(), reply.json()["id"].as_str().unwrap()] {
        for (method, more) in [("GET", ""), ("POST", "/cancel"), ("GET", "/input_items")] {
            let path = format!("{RESPONSES}/{id}{more}");
            assert_eq!(ask_as(&server, &ada, method, &path, "").await.status, 404, "{path}");
        }
        let more = json!({ "previous_response_id": id });
        assert_eq!(create_as(&server, &ada, "more", &more).await.status, 404, "{id}");
    }
    server.ended().await;
}

#[tokio::test]
async fn of_two_requests_at_once_on_a_conversation_one_is_refused() {
    let server = TestServer::new().await;
    let [ada, _] = server.keys.clone();
    let new = ask_as(&server, &ada, "POST", "/v1/conversations", "{}").await.json();
    let more = json!({ "conversation": new["id"], "background": true });
    let (one, other) = tokio::join!(
        create_as(&server, &ada, "slow", &more),
        create_as(&server, &ada, "slow", &more)
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {other:?}");
    server.ended().await;
}
