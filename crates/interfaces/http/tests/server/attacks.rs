//! Unauthorized clients, and malformed requests.

use antiphon_interface_transport::ServerLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Reply, get, post, request, say};
use crate::world::{TOKEN, TestServer};

/// `GET /v1/tasks` with these lines for a head.
async fn head(server: &TestServer, lines: &[&str]) -> Reply {
    say(server.address, &format!("GET /v1/tasks HTTP/1.0\r\n{}\r\n\r\n", lines.join("\r\n"))).await
}

#[tokio::test]
async fn a_request_without_the_token_is_refused() {
    let server = TestServer::new().await;
    let host = format!("host: {}", server.address);
    let longer = format!("Bearer {TOKEN}x");
    let shorter = format!("Bearer {}", &TOKEN[1..]);
    let twice = format!("Bearer {TOKEN}\r\nauthorization: Bearer {TOKEN}");
    let basic = format!("Basic {TOKEN}");
    for wrong in ["", "Bearer", "Bearer ", &longer, &shorter, &twice, &basic, TOKEN] {
        let reply = head(&server, &[&host, &format!("authorization: {wrong}")]).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "UNAUTHORIZED"), "{wrong}");
        assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
        assert!(!reply.body.contains(TOKEN));
    }
    assert_eq!(head(&server, &[&host]).await.status, 401);
    for right in [format!("Bearer {TOKEN}"), format!("bearer  {TOKEN}"), format!("ApiKey {TOKEN}")]
    {
        let reply = head(&server, &[&host, &format!("authorization: {right}")]).await;
        assert_eq!(reply.status, 200, "{right}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_request_without_the_token_does_not_learn_which_routes_exist() {
    let server = TestServer::new().await;
    let address = server.address;
    for line in [
        "GET /v1/nothing",
        "POST /v1/tasks",
        "DELETE /v1/tasks",
        "GET /v1/tasks/x/events",
        "GET /",
        "GET /health/",
        "GET //health",
        "GET /health/../v1/tasks",
        "GET /health/%2e%2e/v1/tasks",
        "GET /HEALTH",
        "GET /health%2f..%2fv1/tasks",
    ] {
        let reply = say(address, &format!("{line} HTTP/1.0\r\nhost: {address}\r\n\r\n")).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "UNAUTHORIZED"), "{line}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_foreign_host_name_is_refused() {
    let server = TestServer::new().await;
    let token = format!("authorization: Bearer {TOKEN}");
    let port = server.address.port();
    for host in [
        "host: evil.example".to_owned(),
        format!("host: evil.example:{port}"),
        "host: localhost".to_owned(),
        "host: ".to_owned(),
        format!("host: localhost:{port}\r\nhost: evil.example"),
        format!("x-forwarded-host: localhost:{port}"),
    ] {
        let reply = head(&server, &[&host, &token]).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{host}");
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "team.example".to_owned()] {
        assert_eq!(head(&server, &[&format!("host: {host}"), &token]).await.status, 200, "{host}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let server = TestServer::new().await;
    let (host, token) =
        (format!("host: {}", server.address), format!("authorization: Bearer {TOKEN}"));
    let port = server.address.port();
    for origin in [
        "http://evil.example".to_owned(),
        "null".to_owned(),
        String::new(),
        format!("http://localhost:{}", port - 1),
        format!("http://localhost:{port}\r\norigin: http://evil.example"),
    ] {
        let reply = head(&server, &[&host, &token, &format!("origin: {origin}")]).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{origin}");
        assert!(!reply.head.contains("access-control"), "{reply:?}");
    }
    let own = format!("origin: http://localhost:{port}");
    let reply = head(&server, &[&host, &token, &own]).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.head.contains("access-control"), "{reply:?}");
    assert!(reply.head.contains("x-content-type-options: nosniff"), "{reply:?}");
    assert!(reply.head.contains("cache-control: no-store"), "{reply:?}");
    let preflight = request(server.address, "OPTIONS", "/v1/tasks", None);
    assert_eq!(say(server.address, &preflight).await.status, 405);
    server.ended().await;
}

#[tokio::test]
async fn unknown_routes_and_methods_have_the_one_error_shape() {
    let server = TestServer::new().await;
    let address = server.address;
    for path in [
        "/",
        "/v1",
        "/v1/nothing",
        "/v1/tasks/unknown",
        "/v1/tasks/unknown/tree",
        "/v1/tasks/unknown/events",
        "/v1/tasks/%00",
        "/v1/tasks/%ff",
        "/v1/tasks/a%20b",
        "/v1/tasks/..%2f..%2fetc%2fpasswd",
    ] {
        let reply = get(address, path).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"), "{path}");
    }
    for verb in ["cancel", "pause", "resume", "messages", "tool_results"] {
        let body = json!({"text": "x", "tool_call_id": "unknown", "content": "x"});
        let reply = post(address, &format!("/v1/tasks/unknown/{verb}"), &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"), "{verb}");
    }
    let reply = post(address, "/v1/approvals/unknown", &json!({"decision": "deny"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"));
    for (method, path) in
        [("DELETE", "/v1/tasks"), ("POST", "/health"), ("GET", "/v1/tasks/x/cancel")]
    {
        let reply = say(address, &request(address, method, path, None)).await;
        assert_eq!((reply.status, reply.code().as_str()), (405, "INVALID_REQUEST"), "{path}");
        assert!(reply.head.contains("allow: "), "{reply:?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let server = TestServer::new().await;
    let address = server.address;
    let deep = format!(
        "{{\"message\":\"x\",\"output_schema\":{}1{}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    for body in ["", "{", "nonsense", "[]", "{\"message\":\"x\"}x", "\u{0}", &deep] {
        let reply = say(address, &request(address, "POST", "/v1/tasks", Some(body))).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{body:.40}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let text = request(address, "POST", "/v1/tasks", Some("{\"message\":\"x\"}"));
        let reply = say(address, &text.replacen("application/json", kind, 1)).await;
        assert_eq!((reply.status, reply.code().as_str()), (415, "INVALID_REQUEST"), "{kind}");
    }
    assert_eq!(get(address, "/v1/tasks").await.json(), json!({"tasks": []}));
    server.ended().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_however_it_is_announced() {
    let server =
        TestServer::with(ServerLimits { body_bytes_max: 1000, ..ServerLimits::default() }).await;
    let address = server.address;
    let body = json!({"message": "x".repeat(1000)}).to_string();
    let announced = request(address, "POST", "/v1/tasks", Some(&body));
    let (head, _) = announced.split_once("\r\n\r\n").unwrap();
    let reply = say(address, &format!("{head}\r\n\r\n")).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "INVALID_REQUEST"));
    let length = format!("content-length: {}\r\n", body.len());
    let chunked = announced
        .replacen(&length, "transfer-encoding: chunked\r\nconnection: close\r\n", 1)
        .replacen("HTTP/1.0", "HTTP/1.1", 1)
        .replacen(&body, &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()), 1);
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(chunked.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert_eq!(Reply::read(&answer).status, 413, "{answer}");
    server.ended().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = TestServer::new().await;
    let line = format!("x-much: {}", "x".repeat(1_000_000));
    let host = format!("host: {}", server.address);
    let reply = head(&server, &[&host, &line]).await;
    assert!([431, 400, 0].contains(&reply.status), "{reply:?}");
    assert_eq!(get(server.address, "/health").await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_affects_no_other_request() {
    let server = TestServer::new().await;
    let reply = post(server.address, "/v1/tasks", &json!({"message": "x", "agent": "panic"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (500, "INTERNAL_ERROR"));
    assert!(!reply.body.contains("as asked"), "{}", reply.body);
    assert_eq!(get(server.address, "/v1/tasks").await.status, 200);
    server.ended().await;
}
