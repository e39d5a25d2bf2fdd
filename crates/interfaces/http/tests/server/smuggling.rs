//! Requests that say two things at once, addresses that mean another one, and words that should make the
//! server go and fetch something.

use std::io::ErrorKind;

use antiphon_core::Position;
use antiphon_http::Webhooks;
use antiphon_interface_transport::{HEAD_BYTES_MAX, HEADERS_MAX, ServerLimits};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Reply, get, post, request, say};
use crate::webhook_server::{Delivery, sources};
use crate::world::{TOKEN, TestServer, with_webhooks};

/// Sends all of it at once and receives everything until the server closes the connection.
async fn received(server: &TestServer, text: &str) -> String {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let _ = socket.write_all(text.as_bytes()).await;
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    String::from_utf8_lossy(&received).into_owned()
}

#[tokio::test]
async fn a_request_of_ambiguous_length_does_nothing_and_hides_no_other_request() {
    let soon = std::time::Duration::from_millis(200);
    let limits = ServerLimits { head_wait: soon, body_wait: soon, ..ServerLimits::default() };
    let server = TestServer::with(limits).await;
    let body = r#"{"message": "smuggled"}"#;
    let hidden = request(server.address, "POST", "/v1/tasks", Some(body));
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = body.len();
    for (lines, payload) in [
        (format!("content-length: {length}\r\ncontent-length: 0"), body.to_owned()),
        (format!("content-length: 0\r\ncontent-length: {length}"), body.to_owned()),
        (format!("content-length: {length}, 0"), body.to_owned()),
        (format!("content-length: +{length}"), body.to_owned()),
        (format!("content-length: -{length}"), body.to_owned()),
        (format!("content-length: 0x{length:x}"), body.to_owned()),
        (format!("content-length : {length}"), body.to_owned()),
        ("transfer-encoding: chunked, identity".to_owned(), chunked.clone()),
        ("transfer-encoding: xchunked".to_owned(), chunked.clone()),
        ("transfer-encoding: identity".to_owned(), chunked.clone()),
        (format!("x-fold: a\r\n content-length: 0\r\ncontent-length: {length}"), body.to_owned()),
        (format!("x-null: a\0b\r\ncontent-length: {length}"), body.to_owned()),
        (format!("x-feed: a\rb\r\ncontent-length: {length}"), body.to_owned()),
    ] {
        let head = format!(
            "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\n{lines}\r\n\r\n",
            server.address
        );
        let answers = received(&server, &format!("{head}{payload}{hidden}")).await;
        assert_eq!(answers.matches("HTTP/1.").count(), 1, "{lines}: {answers}");
        let reply = Reply::read(&answers);
        assert_eq!(reply.status, 400, "{lines}: {answers}");
    }
    assert_eq!(get(server.address, "/v1/tasks").await.json(), json!({"tasks": []}));
    server.ended().await;
}

#[tokio::test]
async fn a_chunked_request_is_the_last_of_its_connection() {
    let server = TestServer::new().await;
    let body = r#"{"message": "first"}"#;
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let hidden = request(server.address, "POST", "/v1/tasks", Some(body));
    for length in ["", "content-length: 5\r\n", "content-length: 4000\r\n"] {
        for lines in [
            format!("{length}transfer-encoding: chunked\r\n"),
            format!("transfer-encoding: chunked\r\n{length}"),
        ] {
            let head = format!(
                "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\
                 content-type: application/json\r\n{lines}\r\n",
                server.address
            );
            let answers = received(&server, &format!("{head}{chunked}{hidden}")).await;
            assert_eq!(answers.matches("HTTP/1.").count(), 1, "{lines}: {answers}");
            assert_eq!(Reply::read(&answers).status, 201, "{lines}: {answers}");
        }
    }
    let tasks = get(server.address, "/v1/tasks").await.json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 6);
    server.ended().await;
}

#[tokio::test]
async fn a_request_with_two_hosts_is_refused() {
    let server = TestServer::new().await;
    let own = server.address;
    let token = format!("authorization: Bearer {TOKEN}");
    for head in [
        format!("GET /v1/tasks HTTP/1.1\r\nhost: {own}\r\nhost: {own}"),
        format!("GET /v1/tasks HTTP/1.1\r\nhost: {own}\r\nhost: evil.example"),
        format!("GET /v1/tasks HTTP/1.1\r\nhost: evil.example, {own}"),
        format!("GET /v1/tasks HTTP/1.1\r\nhost: {own}, evil.example"),
        "GET http://evil.example/v1/tasks HTTP/1.1\r\nhost: evil.example".to_owned(),
        "GET /v1/tasks HTTP/1.1".to_owned(),
    ] {
        let reply = say(own, &format!("{head}\r\n{token}\r\nconnection: close\r\n\r\n")).await;
        assert!([400, 403].contains(&reply.status), "{head}: {reply:?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_target_in_absolute_form_must_name_this_server() {
    let server = TestServer::new().await;
    let own = server.address;
    let port = own.port();
    let lines = format!("host: {own}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close");
    for target in [
        "http://evil.example/v1/tasks".to_owned(),
        format!("http://evil.example:{port}/v1/tasks"),
        format!("http://{own}@evil.example/v1/tasks"),
        format!("http://evil.example@{own}/v1/tasks"),
        "http://localhost/v1/tasks".to_owned(),
        "https://evil.example/health".to_owned(),
        "http://169.254.169.254/health".to_owned(),
    ] {
        let reply = say(own, &format!("GET {target} HTTP/1.1\r\n{lines}\r\n\r\n")).await;
        assert!([400, 403].contains(&reply.status), "{target}: {reply:?}");
        assert!(!reply.body.contains("\"tasks\""), "{target}: {reply:?}");
    }
    let connect = say(own, &format!("CONNECT evil.example:80 HTTP/1.1\r\n{lines}\r\n\r\n")).await;
    assert!([400, 403].contains(&connect.status), "{connect:?}");
    for target in [format!("http://{own}/v1/tasks"), format!("http://localhost:{port}/v1/tasks")] {
        let reply = say(own, &format!("GET {target} HTTP/1.1\r\n{lines}\r\n\r\n")).await;
        assert_eq!(reply.status, 200, "{target}: {reply:?}");
        let foreign = lines.replacen(&own.to_string(), "evil.example", 1);
        let reply = say(own, &format!("GET {target} HTTP/1.1\r\n{foreign}\r\n\r\n")).await;
        assert_eq!(reply.status, 403, "{target}: {reply:?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_with_431() {
    let server = TestServer::new().await;
    let own = server.address;
    let head = |more: &str| {
        format!(
            "GET /v1/tasks HTTP/1.0\r\nhost: {own}\r\nauthorization: Bearer {TOKEN}\r\n{more}\r\n"
        )
    };
    let fields = |count: usize| {
        let lines: Vec<String> = (0..count).map(|n| format!("x-{n}: 1\r\n")).collect();
        lines.concat()
    };
    let long = |bytes: usize| format!("x-long: {}\r\n", "x".repeat(bytes));
    for allowed in [fields(HEADERS_MAX - 2), long(HEAD_BYTES_MAX - 300)] {
        assert_eq!(say(own, &head(&allowed)).await.status, 200, "{allowed:.60}");
    }
    let target = format!("/v1/tasks?x={}", "x".repeat(HEAD_BYTES_MAX));
    let lines = [
        head(&fields(HEADERS_MAX - 1)),
        head(&"x: 1\r\n".repeat(HEADERS_MAX - 1)),
        head(&long(HEAD_BYTES_MAX)),
        head("").replacen("/v1/tasks", &target, 1),
        head(&fields(HEADERS_MAX)).replacen(TOKEN, "", 1),
    ];
    for text in lines {
        let reply = say(own, &text).await;
        assert_eq!((reply.status, reply.code().as_str()), (431, "INVALID_REQUEST"), "{text:.90}");
        assert!(reply.body.contains("at most"), "{}", reply.body);
    }
    // Beyond what is parsed at all.
    for text in [head(&fields(200)), head(&long(300 * 1024)), head(&fields(20_000))] {
        let reply = say(own, &text).await;
        assert_eq!((reply.status, reply.body.as_str()), (431, ""), "{text:.90}");
    }
    assert_eq!(get(own, "/v1/tasks").await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn no_spelling_of_a_path_bypasses_authentication_or_reaches_another_route() {
    let server = TestServer::with_config(|deps| {
        with_webhooks(deps, Some(Webhooks::new(sources()).unwrap()))
    })
    .await;
    let own = server.address;
    let paths = [
        "//v1/tasks",
        "/v1//tasks",
        "/v1/tasks/",
        "/v1/./tasks",
        "/v1/../v1/tasks",
        "/v1/%2e%2e/v1/tasks",
        "/%76%31/tasks",
        "/v1%2ftasks",
        "/v1/tasks%00",
        "/v1/tasks%0d%0ax-admin:%201",
        "/v1/tasks;x=/health",
        "/v1\\tasks",
        "/V1/tasks",
        "/health/../v1/tasks",
        "/health%2f%2e%2e%2fv1%2ftasks",
        "/health//",
        "/v1/events/../tasks",
        "/v1/events/ci/../../tasks",
        "/v1/events/%2e%2e%2ftasks",
        "/v1/events//ci",
        "/v1/events/",
    ];
    for path in paths {
        for method in ["GET", "POST"] {
            let bare = format!("{method} {path} HTTP/1.0\r\nhost: {own}\r\n\r\n");
            let stranger = say(own, &bare).await;
            assert!([400, 401, 404].contains(&stranger.status), "{method} {path}: {stranger:?}");
            assert!(!stranger.body.contains("\"tasks\""), "{path}");
            let body = (method == "POST").then_some(r#"{"message":"x"}"#);
            let known = say(own, &request(own, method, path, body)).await;
            assert!([400, 401, 404, 405].contains(&known.status), "{method} {path}: {known:?}");
        }
    }
    assert_eq!(get(own, "/v1/tasks").await.json(), json!({"tasks": []}));
    server.ended().await;
}

#[tokio::test]
async fn no_request_makes_the_server_fetch_a_url() {
    let server = TestServer::with_config(|deps| {
        with_webhooks(deps, Some(Webhooks::new(sources()).unwrap()))
    })
    .await;
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", trap.local_addr().unwrap());
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    let schema = json!({"$schema": url, "$id": url, "$ref": format!("{url}#/a")});
    let tool = json!({"name": "t", "description": url, "parameters": schema});
    let requested = [
        ("/v1/tasks", json!({"message": url})),
        ("/v1/tasks", json!({"message": {"content": [{"type": "image", "url": url}]}})),
        ("/v1/tasks", json!({"message": "x", "output_schema": schema})),
        ("/v1/tasks", json!({"message": "x", "external_tools": [tool]})),
        ("/v1/tasks", json!({"message": "x", "callback_url": url, "webhook": url})),
        ("/v1/agents/reviewer/inbox", json!({"from": "x", "message": url})),
        (
            "/v1/agents/reviewer/inbox",
            json!({"content": {"type": "message", "body": "x", "blocks": [{"type": "image", "url": url}]}}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "scripted/test", "messages": [{"role": "user", "content": [image]}]}),
        ),
    ];
    let mut tasks = Vec::new();
    for (path, body) in &requested {
        let reply = post(server.address, path, body).await;
        assert!([201, 202, 400, 422].contains(&reply.status), "{path} {body}: {reply:?}");
        if reply.status == 201 {
            tasks.push(reply.json()["task_id"].as_str().unwrap().to_owned());
        }
    }
    let payload = json!({"body": url, "url": url, "challenge": url, "SubscribeURL": url});
    let reply = Delivery::new("ci", "msg_1", &payload.to_string()).send(&server).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    for task in tasks {
        server.orchestrator.wait(&task.parse().unwrap()).await.unwrap();
    }
    let head = server.orchestrator.head().await.unwrap();
    assert!(head > Position(0));
    let std = trap.into_std().unwrap();
    let came = std.accept().map(|(_, from)| from);
    assert_eq!(came.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    server.ended().await;
}
