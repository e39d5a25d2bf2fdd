//! Events from outside: those that are signed, those that are not, and those that come again.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::Journal;
use antiphon_core::{
    AgentName, EventBody, InputBlock, Message, MessageQueued, Position, UserMessage,
};
use antiphon_http::{Scheme, WEBHOOK_TEXT_BYTES_MAX, Webhooks, WebhooksError};
use antiphon_interface_transport::ServerLimits;
use serde_json::{Value, json};

use crate::client::{get, post, request, say};
use crate::webhook_server::{
    Delivery, github, sources, webhook, webhook_server, webhook_server_with,
};
use crate::world::{TestServer, with_webhooks, world};

/// Everything that was put into inboxes.
async fn arrived(server: &TestServer) -> Vec<MessageQueued> {
    let head = server.orchestrator.head().await.unwrap();
    let mut events = server.orchestrator.follow(None, Position(0));
    let (mut arrived, mut at) = (Vec::new(), Position(0));
    while at < head {
        let event = events.next().await.unwrap();
        at = event.position;
        if let EventBody::MessageQueued(queued) = event.body {
            arrived.push(queued);
        }
    }
    arrived
}

fn text(message: &UserMessage) -> String {
    let said = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => panic!("no picture was sent"),
    };
    message.content.iter().map(said).collect()
}

/// What the model has read, once it has answered so often.
async fn read_by_model(server: &TestServer, answers: usize) -> Vec<String> {
    let name = AgentName::parse("reviewer").unwrap();
    let task = server.orchestrator.agent_task(&name).await.unwrap().unwrap();
    let mut events = server.orchestrator.follow(Some(task.task_id), Position(0));
    let (mut reported, mut answered) = (Vec::new(), 0);
    while answered < answers {
        if let EventBody::MessageAppended(appended) = events.next().await.unwrap().body {
            match &*appended.message {
                Message::User(message) => reported.push(text(message)),
                Message::Assistant(_) => answered += 1,
                Message::ToolResult(_) => {}
            }
        }
    }
    reported
}

#[tokio::test]
async fn an_event_is_stored_with_its_payload_and_the_model_reads_only_its_body() {
    let server = webhook_server().await;
    let body = r#"{"body": "The build is red", "build": {"id": 7, "secret_plan": 1.50}}"#;
    let reply = Delivery::new("ci", "msg_1", body).send(&server).await;
    assert_eq!((reply.status, reply.json()), (202, json!({"receipt": "accepted"})));
    assert!(reply.head.contains("x-ratelimit-limit: 120"), "{reply:?}");
    let queued = &arrived(&server).await[0];
    let written: Value = serde_json::to_value(queued).unwrap();
    assert_eq!(
        written,
        json!({
            "id": queued.id, "mode": "queue", "from": "event:ci", "class": "plain_event",
            "content": {"type": "message", "body": "The build is red"},
            "render_metadata": {"class": "external_event", "salience": "important"},
            "payload": {"body": "The build is red", "build": {"id": 7, "secret_plan": 1.50}},
            "provenance": "webhook:ci",
        })
    );
    assert_eq!(queued.payload.as_ref().unwrap().as_str(), body, "as it was sent");
    assert_eq!(read_by_model(&server, 1).await, ["[EVENT via ci] The build is red"]);
    server.ended().await;
}

#[tokio::test]
async fn an_event_without_a_body_is_reported_without_text() {
    let server = webhook_server().await;
    for (n, payload) in ["{}", "[1, 2]", "7", "\"text\"", r#"{"body": 7}"#].iter().enumerate() {
        let reply = Delivery::new("quiet", &format!("msg_{n}"), payload).send(&server).await;
        assert_eq!(reply.status, 202, "{payload}: {reply:?}");
    }
    let rendered = |queued: &MessageQueued| text(&queued.user_message(chrono::Utc::now()));
    let texts: Vec<String> = arrived(&server).await.iter().map(rendered).collect();
    assert_eq!(texts, ["[EVENT via quiet]"; 5]);
    server.ended().await;
}

#[tokio::test]
async fn a_payload_is_read_as_configured_and_up_to_a_limit() {
    let server = webhook_server().await;
    let long = json!({"log": "é".repeat(WEBHOOK_TEXT_BYTES_MAX), "hidden": "\u{e0041}"});
    let reply = Delivery::new("whole", "msg_1", &long.to_string()).send(&server).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let reported = read_by_model(&server, 1).await.remove(0);
    assert!(reported.starts_with("[EVENT via whole] {\n  \"log\": \"éé"), "{reported:.60}");
    assert!(reported.len() < WEBHOOK_TEXT_BYTES_MAX + 100, "{} bytes", reported.len());
    assert!(reported.ends_with("bytes more"), "{}", &reported[reported.len() - 40..]);
    assert!(!reported.contains('\u{e0041}'));
    server.ended().await;
}

#[tokio::test]
async fn a_repeated_delivery_is_accepted_once_also_after_a_restart() {
    let journal = Arc::new(MemoryJournal::new());
    let server = || {
        let used = Arc::clone(&journal) as Arc<dyn Journal>;
        let hooks = |deps| with_webhooks(deps, Some(Webhooks::new(sources()).unwrap()));
        TestServer::built(world(used).into(), Arc::clone(&journal), ServerLimits::default(), hooks)
    };
    let delivery = Delivery::new("ci", "msg_1", r#"{"body": "red"}"#);
    let first = server().await;
    assert_eq!(delivery.send(&first).await.json(), json!({"receipt": "accepted"}));
    assert_eq!(delivery.send(&first).await.json(), json!({"receipt": "deduplicated"}));
    read_by_model(&first, 1).await;
    first.ended().await;
    let second = server().await;
    second.orchestrator.recover().await.unwrap();
    let again = delivery.send(&second).await;
    assert_eq!((again.status, again.json()), (202, json!({"receipt": "deduplicated"})));
    assert_eq!(arrived(&second).await.len(), 1);
    // Ids of another source, and of clients with a token, are independent.
    let inbox = json!({"from": "cron", "message": "green"});
    let text =
        request(second.address, "POST", "/v1/agents/reviewer/inbox", Some(&inbox.to_string()));
    let text = text.replacen("\r\n", "\r\nidempotency-key: msg_1\r\n", 1);
    assert_eq!(say(second.address, &text).await.json()["receipt"], "accepted");
    let other = Delivery::new("quiet", "msg_1", "{}");
    assert_eq!(other.send(&second).await.json(), json!({"receipt": "accepted"}));
    second.ended().await;
}

#[tokio::test]
async fn concurrent_deliveries_of_the_same_event_are_accepted_once() {
    let server = webhook_server().await;
    let delivery = Delivery::new("ci", "msg_1", r#"{"body": "red"}"#);
    let replies = futures_util::future::join_all((0..20).map(|_| delivery.send(&server))).await;
    let accepted = |receipt: &str| {
        replies.iter().filter(|reply| reply.json() == json!({"receipt": receipt})).count()
    };
    assert_eq!((accepted("accepted"), accepted("deduplicated")), (1, 19));
    assert_eq!(arrived(&server).await.len(), 1);
    server.ended().await;
}

#[tokio::test]
async fn a_github_delivery_is_accepted_once_with_any_id() {
    let server = webhook_server().await;
    let mut delivery = Delivery::new("github", "", r#"{"action": "opened", "number": 1}"#);
    let signed = github(&delivery.body);
    for (id, receipt) in [("one", "accepted"), ("one", "deduplicated"), ("two", "deduplicated")] {
        let lines = [signed.clone(), format!("x-github-delivery: {id}")];
        let reply = delivery.send_with(&server, &lines).await;
        assert_eq!(reply.json(), json!({"receipt": receipt}), "{id}");
    }
    delivery.body.push(' ');
    assert_eq!(delivery.send_with(&server, &[signed]).await.status, 401);
    assert_eq!(delivery.send_with(&server, &[github(&delivery.body)]).await.status, 202);
    assert_eq!(delivery.send(&server).await.status, 401, "another scheme");
    assert_eq!(arrived(&server).await.len(), 2);
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_signature_is_refused_without_a_reason() {
    let server = webhook_server().await;
    let good = Delivery::new("ci", "msg_1", r#"{"body": "red"}"#);
    let now: i64 = good.timestamp.parse().unwrap();
    let mut refused = Vec::new();
    for missing in 0..3 {
        let mut lines = good.lines();
        lines.remove(missing);
        refused.push(good.send_with(&server, &lines).await);
        let mut lines = good.lines();
        lines.push(lines[missing].clone());
        refused.push(good.send_with(&server, &lines).await);
    }
    for (from, to) in [
        (good.body.as_str(), r#"{"body": "RED"}"#),
        ("webhook-id: msg_1", "webhook-id: msg_2"),
        ("v1,", "v2,"),
        ("v1,", ""),
        ("v1,", "v1,A"),
        (&good.timestamp, &(now + 1).to_string()),
    ] {
        let text = good.text(&server, &good.lines()).replacen(from, to, 1);
        refused.push(say(server.address, &text).await);
    }
    let otherwise = [
        Delivery { timestamp: (now - 301).to_string(), ..good.clone() },
        Delivery { timestamp: (now + 400).to_string(), ..good.clone() },
        Delivery { timestamp: format!("+{now}"), ..good.clone() },
        Delivery { timestamp: "-1".to_owned(), ..good.clone() },
        Delivery { timestamp: "9".repeat(40), ..good.clone() },
        Delivery { timestamp: String::new(), ..good.clone() },
        Delivery { id: String::new(), ..good.clone() },
        Delivery { id: "x".repeat(1000), ..good.clone() },
        Delivery { id: "msg.1".to_owned(), ..good.clone() },
        Delivery { secret: "another secret of another source".to_owned(), ..good.clone() },
        Delivery { secret: String::new(), ..good.clone() },
    ];
    for delivery in otherwise {
        refused.push(delivery.send(&server).await);
    }
    assert_eq!(refused.len(), 23);
    for (n, reply) in refused.iter().enumerate() {
        assert_eq!((reply.status, reply.code().as_str()), (401, "UNAUTHORIZED"), "{n}: {reply:?}");
        assert_eq!(reply.body, refused[0].body, "{n}");
    }
    assert!(arrived(&server).await.is_empty());
    assert_eq!(good.send(&server).await.status, 202, "strangers have not used it up");
    server.ended().await;
}

#[tokio::test]
async fn an_unknown_source_looks_like_one_without_a_secret() {
    let server = webhook_server().await;
    let bare = TestServer::new().await;
    for source in ["nothing", "CI", "ci%20", "ci%00", "%ff", "%2e%2e", "ci%2f..", "a%2fb"] {
        let source: &'static str = source;
        let delivery = Delivery::new(source, "msg_1", "{}");
        let (here, off) = (delivery.send(&server).await, delivery.send(&bare).await);
        assert_eq!((here.status, here.code().as_str()), (404, "NOT_FOUND"), "{source}");
        assert_eq!(here.body, off.body, "{source}");
    }
    let off = Delivery::new("ci", "msg_1", "{}").send(&bare).await;
    assert_eq!(off.status, 404);
    // Only `POST` is open, and only there.
    for line in
        ["GET /v1/events/ci", "POST /v1/events", "POST /v1/events/ci/x", "POST //v1/events/ci"]
    {
        let text = format!("{line} HTTP/1.0\r\nhost: {}\r\n\r\n", server.address);
        assert_eq!(say(server.address, &text).await.status, 401, "{line}");
    }
    bare.ended().await;
    server.ended().await;
}

#[tokio::test]
async fn the_token_does_not_replace_a_signature_and_no_page_sends_events() {
    let server = webhook_server().await;
    let reply = post(server.address, "/v1/events/ci", &json!({"body": "red"})).await;
    assert_eq!(reply.status, 401);
    let own = format!("origin: http://{}\r\n", server.address);
    for origin in [own.as_str(), "origin: http://evil.example\r\n", "origin: null\r\n"] {
        let delivery = Delivery::new("ci", "msg_1", "{}");
        let reply = Delivery { more: origin.to_owned(), ..delivery }.send(&server).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{origin}");
    }
    let delivery = Delivery::new("ci", "msg_1", "{}");
    let text = delivery.text(&server, &delivery.lines());
    let host = server.address.to_string();
    let foreign = say(server.address, &text.replacen(&host, "evil.example", 1)).await;
    assert_eq!(foreign.status, 403);
    assert!(arrived(&server).await.is_empty());
    server.ended().await;
}

#[tokio::test]
async fn signed_bodies_that_are_invalid_are_refused() {
    let server = webhook_server().await;
    let deep = format!("{}1{}", "[".repeat(101), "]".repeat(101));
    for body in ["", "nonsense", "{", "{}x", "\u{0}", "1e999", "\"\\ud800\"", &deep] {
        let reply = Delivery::new("ci", "msg_1", body).send(&server).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{body:.20}");
    }
    assert_eq!(Delivery::new("ci", "msg_1", "null").send(&server).await.status, 422);
    let delivery = Delivery::new("ci", "msg_1", "payload=%7B%7D");
    let text = delivery.text(&server, &delivery.lines());
    let form = text.replacen("application/json", "application/x-www-form-urlencoded", 1);
    assert_eq!(say(server.address, &form).await.status, 415);
    assert!(arrived(&server).await.is_empty());
    server.ended().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_or_too_slow_are_refused_first() {
    let limits = ServerLimits { body_wait: Duration::from_millis(50), ..ServerLimits::default() };
    let server = webhook_server_with(limits).await;
    let large = Delivery::new("small", "msg_1", &format!("\"{}\"", "x".repeat(100)));
    let reply = large.send(&server).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "INVALID_REQUEST"));
    let fits = Delivery::new("small", "msg_1", &format!("\"{}\"", "x".repeat(98)));
    assert_eq!(fits.send(&server).await.status, 202);
    let slow = Delivery::new("ci", "msg_1", "{}");
    let text = slow.text(&server, &slow.lines());
    let text = text.replacen("content-length: 2", "content-length: 3", 1);
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut socket, text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut socket, &mut answer).await.unwrap();
    assert_eq!(crate::client::Reply::read(&answer).status, 408, "{answer}");
    server.ended().await;
}

#[tokio::test]
async fn a_source_beyond_its_rate_limit_learns_when_to_retry() {
    let server = webhook_server().await;
    for n in 0..2 {
        let reply = Delivery::new("rare", &format!("msg_{n}"), "{}").send(&server).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    let reply = Delivery::new("rare", "msg_2", "{}").send(&server).await;
    assert_eq!((reply.status, reply.code().as_str()), (429, "RATE_LIMIT_EXCEEDED"));
    assert!(reply.head.contains("x-ratelimit-remaining: 0"), "{reply:?}");
    let wait = reply.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    assert!((1..=30).contains(&wait.unwrap().parse::<u32>().unwrap()), "{reply:?}");
    assert_eq!(Delivery::new("ci", "msg_2", "{}").send(&server).await.status, 202);
    assert_eq!(arrived(&server).await.len(), 3);
    server.ended().await;
}

#[tokio::test]
async fn senders_do_not_learn_which_agents_exist() {
    let server = webhook_server().await;
    let reply = Delivery::new("unread", "msg_1", "{}").send(&server).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    assert!(!reply.body.contains("reviewer") && !reply.body.contains("nobody`"), "{}", reply.body);
    assert_eq!(get(server.address, "/v1/tasks").await.json(), json!({"tasks": []}));
    server.ended().await;
}

#[tokio::test]
async fn two_sources_of_the_same_name_are_refused() {
    let twice = vec![webhook("ci", Scheme::Standard), webhook("ci", Scheme::Github)];
    let refused = Webhooks::new(twice).map(|_| ()).unwrap_err();
    assert_eq!(refused, WebhooksError::Twice { source_name: "ci".parse().unwrap() });
    let many = (0..257).map(|n| webhook(&format!("s{n}"), Scheme::Standard)).collect();
    assert_eq!(Webhooks::new(many).map(|_| ()).unwrap_err(), WebhooksError::TooMany);
}

#[tokio::test]
async fn an_inbox_request_cannot_name_a_source_with_signed_events() {
    let server = webhook_server().await;
    let inbox = "/v1/agents/reviewer/inbox";
    let reply = post(server.address, inbox, &json!({"from": "ci", "message": "red"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (422, "INVALID_MESSAGE"), "{reply:?}");
    assert!(reply.body.contains("/v1/events/ci"), "{}", reply.body);
    assert_eq!(arrived(&server).await, []);
    let reply = post(server.address, inbox, &json!({"from": "cron", "message": "red"})).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    server.ended().await;
}
