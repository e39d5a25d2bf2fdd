//! What clients must not be able to do.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{World, message};

/// How long something may take that comes by itself.
const PATIENCE: Duration = Duration::from_secs(40);

#[test]
fn a_request_needs_a_key_a_known_host_and_no_foreign_origin() {
    let world = World::new("");
    let reader = world.key("reader", "read");
    let server = world.serve();
    let (address, token) = (&server.address, &server.token);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" }).to_string();
    let (host, key) =
        (format!("host: {address}\r\n"), format!("authorization: Bearer {token}\r\n"));
    for (head, status) in [
        (host.clone(), 401),
        (format!("{host}authorization: Bearer {}\r\n", "0".repeat(64)), 401),
        (format!("host: evil.example\r\n{key}"), 403),
        (format!("{host}{key}origin: https://evil.example\r\n"), 403),
        (format!("{host}authorization: Bearer {reader}\r\n"), 403),
        (format!("{host}{key}"), 200),
    ] {
        let head = format!("{head}a2a-version: 1.0\r\n");
        let reply = server.raw("POST", "/a2a/helper", &head, &body);
        assert_eq!(reply.status, status, "{head}: {reply:?}");
        assert_eq!(reply.json()["error"].is_object(), status != 200, "{reply:?}");
    }
    for path in ["/.well-known/agent-card.json", "/.well-known/jwks.json"] {
        let reply = server.raw("GET", path, &host, "");
        assert_eq!(reply.status, 401, "no agent is listed: {reply:?}");
    }
}

#[test]
fn listed_agents_alone_are_seen_and_their_cards_are_signed_with_the_key_of_the_project() {
    let world = World::new("[a2a]\nagents = [\"helper\"]\nurl = \"https://agents.example\"");
    let server = world.serve();
    let host = format!("host: {}\r\n", server.address);
    let card = server.raw("GET", "/.well-known/agent-card.json", &host, "").json();
    assert_eq!(card["supportedInterfaces"][0]["url"], "https://agents.example/a2a/helper");
    assert!(card["signatures"][0]["signature"].is_string(), "{card}");
    let keys = server.raw("GET", "/.well-known/jwks.json", &host, "").json();
    let shown: Value = serde_json::from_str(&world.run(&["keys", "card"])).unwrap();
    assert_eq!(keys, shown);
    let hidden = server.raw("GET", "/a2a/other/.well-known/agent-card.json", &host, "");
    assert_eq!(hidden.status, 404, "{hidden:?}");
    let hidden = server.rpc(&server.token, "other", "SendMessage", &message("m1", "hi"));
    assert_eq!(hidden["error"]["code"], 404, "{hidden}");
}

#[test]
fn contexts_tasks_and_message_ids_of_another_key_are_of_no_use() {
    let world = World::new("");
    let (ada, eve) = (world.key("ada", "write"), world.key("eve", "write"));
    let server = world.serve();
    let sent = server.rpc(&ada, "helper", "SendMessage", &message("m1", "secret"));
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    let mut forged = message("m2", "hello");
    forged["message"]["contextId"] = task["contextId"].clone();
    let refused = server.rpc(&eve, "helper", "SendMessage", &forged);
    let mut unknown = message("m2", "hello");
    unknown["message"]["contextId"] = json!("01970000-0000-7000-8000-000000000000");
    let absent = server.rpc(&eve, "helper", "SendMessage", &unknown);
    assert_eq!((&refused["error"]["code"], &refused), (&json!(-32602), &absent));
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let reply = server.rpc(&eve, "helper", method, &json!({ "id": task["id"] }));
        assert_eq!(reply["error"]["code"], -32001, "{method}: {reply}");
    }
    let same = server.rpc(&eve, "helper", "SendMessage", &message("m1", "secret"));
    assert_ne!(same["result"]["task"]["id"], task["id"], "a message id is that of its key");
    let through_another = server.rpc(&ada, "other", "GetTask", &json!({ "id": task["id"] }));
    assert_eq!(through_another["error"]["code"], -32001, "{through_another}");
}

#[test]
fn too_large_messages_are_refused_and_the_server_goes_on() {
    let world = World::new("");
    let server = world.serve();
    let token = server.token.clone();
    let mut many = message("m1", "");
    many["message"]["parts"] = json!(vec![json!({ "text": "x" }); 300]);
    let reply = server.rpc(&token, "helper", "SendMessage", &many);
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let large = message("m2", &"x".repeat(64 << 20)).to_string();
    let reply = server.raw("POST", "/a2a/helper/message:send", &server.head(&token), &large);
    assert!(reply.status == 413 || reply.status == 0, "{}", reply.status);
    let mut image = message("m3", "");
    let raw = "A".repeat(14 << 20);
    image["message"]["parts"] = json!([{ "raw": raw, "mediaType": "image/png" }]);
    let reply = server.rpc(&token, "helper", "SendMessage", &image);
    assert!(reply["error"]["code"].is_number(), "{reply}");
    let reply = server.rpc(&token, "helper", "SendMessage", &message("m4", "hi"));
    assert_eq!(reply["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{reply}");
}

/// Reads a request to its blank line and answers it.
fn answer(listener: &TcpListener, response: &str) {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut read = Vec::new();
    let mut bytes = [0; 4096];
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = socket.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "the request ended early");
        read.extend_from_slice(&bytes[..count]);
    }
    socket.write_all(response.as_bytes()).unwrap();
}

/// A task that does not end.
fn stalling(server: &crate::world::Server) -> Value {
    let mut params = message("stalling", "stall");
    params["configuration"] = json!({ "returnImmediately": true });
    let sent = server.rpc(&server.token, "helper", "SendMessage", &params);
    sent["result"]["task"]["id"].clone()
}

#[test]
fn notifications_reach_no_private_address_and_follow_no_redirect() {
    let [first, second] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [allowed, forbidden] = [&first, &second].map(|it| it.local_addr().unwrap().port());
    let world = World::new(&format!("[a2a]\npush_hosts = [\"127.0.0.1:{allowed}\"]"));
    let server = world.serve();
    let id = stalling(&server);
    let create = |url: &str| {
        let config = json!({ "taskId": id, "url": url });
        server.rpc(&server.token, "helper", "CreateTaskPushNotificationConfig", &config)
    };
    for url in [
        &format!("http://127.0.0.1:{forbidden}/"),
        &format!("http://localhost:{allowed}/"),
        "https://localhost/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:169.254.169.254]/",
        "https://2852039166/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "http://public.example/",
        "file:///etc/passwd",
        "",
    ] {
        let reply = create(url);
        assert!(reply["error"]["code"].is_number(), "{url}: {reply}");
    }
    let made = create(&format!("http://127.0.0.1:{allowed}/hook"));
    assert!(made["result"]["id"].is_string(), "{made}");
    let moved = format!(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{forbidden}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    // It is not delivered, and tried again where the configuration says.
    answer(&first, &moved);
    answer(&first, &moved);
    second.set_nonblocking(true).unwrap();
    let followed: Option<TcpStream> = second.accept().ok().map(|(socket, _)| socket);
    assert!(followed.is_none(), "the redirect was followed");
}
