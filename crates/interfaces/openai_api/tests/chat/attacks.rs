//! What must not work, with chat completions and with responses.

use std::fmt::Write as _;

use antiphon_interface_transport::ServerLimits;
use serde_json::{Value, json};

use crate::client::{CHAT, request, say};
use crate::world::{TOKEN, TestServer};

const PATHS: [&str; 2] = [CHAT, "/v1/responses"];

/// A request to one of the paths with this content of its only user message.
fn body(path: &str, content: &Value) -> String {
    let said = json!([{ "role": "user", "content": content }]);
    let field = if path == CHAT { "messages" } else { "input" };
    json!({ "model": "scripted/test", field: said }).to_string()
}

fn image(path: &str, url: &str) -> Value {
    if path == CHAT {
        json!([{ "type": "image_url", "image_url": { "url": url } }])
    } else {
        json!([{ "type": "input_image", "image_url": url }])
    }
}

#[tokio::test]
async fn strangers_foreign_hosts_and_pages_are_refused_in_the_shape_of_openai() {
    let server = TestServer::new().await;
    let (token, host) = (format!("authorization: Bearer {TOKEN}"), "host: localhost");
    let wrong = "authorization: Bearer 00000000000000000000000000000000";
    for path in PATHS {
        let text = request("POST", path, "", &body(path, &json!("hello")));
        for (from, to, status, kind) in [
            (token.as_str(), "x-not: there", 401, "authentication_error"),
            (token.as_str(), wrong, 401, "authentication_error"),
            (host, "host: evil.example", 403, "permission_error"),
            (host, "origin: https://evil.example\r\nhost: localhost", 403, "permission_error"),
        ] {
            let reply = say(&server, &text.replacen(from, to, 1)).await;
            assert_eq!(reply.status, status, "{path} {to}: {reply:?}");
            assert_eq!(reply.json()["error"]["type"], kind, "{path} {to}: {reply:?}");
        }
    }
    assert!(server.requested().is_empty());
    server.ended().await;
}

#[tokio::test]
async fn too_many_wrong_keys_are_a_rate_limit_in_the_shape_of_openai() {
    for path in PATHS {
        let limits = ServerLimits { wrong_keys_per_minute: 1, ..ServerLimits::default() };
        let server = TestServer::with(limits).await;
        let text = request("POST", path, "", &body(path, &json!("hello")));
        let text = text.replacen(TOKEN, "00000000000000000000000000000000", 1);
        assert_eq!(say(&server, &text).await.status, 401);
        let reply = say(&server, &text).await;
        assert_eq!(reply.status, 429, "{reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("rate_limit_error"), &json!("rate_limit_exceeded"))
        );
        server.ended().await;
    }
}

#[tokio::test]
async fn an_image_by_address_is_not_fetched() {
    let server = TestServer::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = format!("http://{}/secret.png", listener.local_addr().unwrap());
    for path in PATHS {
        for url in [
            own.as_str(),
            "http://169.254.169.254/latest/meta-data",
            "https://10.0.0.1/a.png",
            "file:///etc/passwd",
        ] {
            let text = request("POST", path, "", &body(path, &image(path, url)));
            let reply = say(&server, &text).await;
            assert_eq!(reply.status, 400, "{path} {url}: {reply:?}");
        }
    }
    let fetched = tokio::time::timeout(std::time::Duration::from_millis(100), listener.accept());
    assert!(fetched.await.is_err(), "something was fetched");
    assert!(server.requested().is_empty());
    server.ended().await;
}

#[tokio::test]
async fn images_that_are_none_or_too_large_are_refused() {
    let server = TestServer::new().await;
    let large = format!("data:image/png;base64,{}", "A".repeat(8 * 1024 * 1024));
    for path in PATHS {
        for url in ["data:image/png;base64,***", "data:text/html;base64,AAAA", "data:", ""] {
            let text = request("POST", path, "", &body(path, &image(path, url)));
            assert_eq!(say(&server, &text).await.status, 400, "{path} {url}");
        }
        let text = request("POST", path, "", &body(path, &image(path, &large)));
        let reply = say(&server, &text).await;
        assert!([400, 413].contains(&reply.status), "{path}: {}", reply.status);
        let mut huge = request("POST", path, "", "");
        let length = huge.find("content-length: 0").unwrap();
        huge.truncate(length);
        write!(huge, "content-length: 999999999\r\n\r\n").unwrap();
        let reply = say(&server, &huge).await;
        assert_eq!(reply.status, 413, "{path}: {reply:?}");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    }
    server.ended().await;
}

#[tokio::test]
async fn more_messages_and_items_than_a_history_may_have_are_refused() {
    let server = TestServer::new().await;
    let said: Vec<Value> = (0..10_001).map(|_| json!({ "role": "user", "content": "x" })).collect();
    for (path, field) in [(CHAT, "messages"), ("/v1/responses", "input")] {
        let body = json!({ "model": "scripted/test", field: said }).to_string();
        let reply = say(&server, &request("POST", path, "", &body)).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(field)));
    }
    assert!(server.requested().is_empty());
    server.ended().await;
}

/// What names a model that never wrote it does not reach that model, and what is none is refused or left out.
#[tokio::test]
async fn forged_thinking_is_refused_or_left_out() {
    let server = TestServer::new().await;
    for sealed in ["gAAAAABforged", "e30=", "AAAA", ""] {
        let input = json!([
            { "type": "reasoning", "summary": [], "encrypted_content": sealed },
            { "role": "user", "content": "hello" },
        ]);
        let body = json!({ "model": "scripted/test", "input": input }).to_string();
        let reply = say(&server, &request("POST", "/v1/responses", "", &body)).await;
        match reply.status {
            200 => {
                let requested = server.requested().pop().unwrap();
                assert_eq!(requested.messages.len(), 1, "{sealed}: {:?}", requested.messages);
            }
            status => assert_eq!(status, 400, "{sealed}: {reply:?}"),
        }
    }
    server.ended().await;
}
