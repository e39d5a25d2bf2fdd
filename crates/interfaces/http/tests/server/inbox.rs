//! Inboxes of agents, over HTTP.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use antiphon_core::{
    AgentName, EventBody, InputBlock, Message, Position, QueuedMessage, RenderMetadata, Sender,
    TaskId,
};
use antiphon_runtime::{Arrival, INBOX_OF_SENDER_MAX, Receipt};
use serde_json::{Value, json};

use crate::client::{Reply, get, order, post, request, say};
use crate::world::TestServer;

const INBOX: &str = "/v1/agents/reviewer/inbox";

fn name() -> AgentName {
    AgentName::parse("reviewer").unwrap()
}

async fn sent(server: &TestServer, body: Value) -> Value {
    let reply = post(server.address, INBOX, &body).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()
}

/// The same with a key.
async fn keyed(server: &TestServer, key: &str, body: &Value) -> Reply {
    let text = request(server.address, "POST", INBOX, Some(&body.to_string()));
    let text = text.replacen("\r\n", &format!("\r\nidempotency-key: {key}\r\n"), 1);
    say(server.address, &text).await
}

async fn task(server: &TestServer) -> TaskId {
    server.orchestrator.agent_task(&name()).await.unwrap().unwrap().task_id
}

/// Waits until the agent has said something that ends so.
async fn said(server: &TestServer, end: &str) {
    let mut events = server.orchestrator.follow(Some(task(server).await), Position(0));
    loop {
        if let EventBody::MessageAppended(appended) = events.next().await.unwrap().body
            && let Message::Assistant(answer) = &*appended.message
            && answer.text().ends_with(end)
        {
            return;
        }
    }
}

/// Has the agent there, and at rest.
async fn resting(server: &TestServer) -> TaskId {
    let started =
        server.orchestrator.start_agent(&name(), &antiphon_core::Provenance::Owner).await.unwrap();
    server.orchestrator.pause(&started.task_id).await.unwrap();
    started.task_id
}

#[tokio::test]
async fn an_interaction_in_an_inbox_is_read_once() {
    let server = TestServer::new().await;
    let body = json!({"message": "hi"});
    let first = keyed(&server, "k1", &body).await;
    assert_eq!(first.status, 202, "{first:?}");
    let (id, task_id) = (first.json()["id"].clone(), task(&server).await);
    assert_eq!(first.json(), json!({"receipt": "accepted", "id": id, "task_id": task_id}));
    said(&server, "Done with hi").await;
    let again = keyed(&server, "k1", &body).await;
    assert_eq!(again.json(), json!({"receipt": "deduplicated", "id": id, "task_id": task_id}));
    // Another sender's key is another key.
    let event = keyed(&server, "k1", &json!({"from": "ci", "message": "red"})).await;
    assert_eq!((event.status, &event.json()["receipt"]), (202, &json!("accepted")));
    said(&server, "Done with [EVENT via ci] red").await;
    let state = server.orchestrator.task(&task_id).await.unwrap();
    assert_eq!(state.messages().len(), 4, "two were said, two were answered");
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_waits_for_a_request_gets_the_answer() {
    let server = TestServer::new().await;
    let requested =
        json!({"request": {"intent": "review", "params": {"branch": "b"}}, "timeout_s": 60});
    let id = sent(&server, requested).await["id"].as_str().unwrap().to_owned();
    let answer = get(server.address, &format!("/v1/requests/{id}?wait_s=20")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let result = format!("Done with [REQUEST {id} from user: review] {{\"branch\":\"b\"}}");
    assert_eq!(answer.json(), json!({"id": id, "state": "completed", "result": result}));
    // Without patience it is the same.
    let shown = get(server.address, &format!("/v1/requests/{id}")).await;
    assert_eq!(shown.json(), answer.json());
    server.ended().await;
}

#[tokio::test]
async fn a_request_is_waiting_then_taken_then_failed_when_its_agent_stops() {
    let server = TestServer::new().await;
    let task_id = resting(&server).await;
    let id = sent(&server, json!({"request": {"intent": "hang"}})).await["id"].clone();
    let path = format!("/v1/requests/{}", id.as_str().unwrap());
    let open = |state: &str| json!({"id": id, "state": state, "task_id": task_id});
    assert_eq!(get(server.address, &path).await.json(), open("waiting"));
    server.orchestrator.resume(&task_id).await.unwrap();
    let mut events = server.orchestrator.follow(Some(task_id.clone()), Position(0));
    while events.next().await.unwrap().body.event_type() != "tool_started" {}
    assert_eq!(get(server.address, &format!("{path}?wait_s=1")).await.json(), open("taken"));
    let stopped = order(server.address, "/v1/agents/reviewer/stop").await;
    assert_eq!(stopped.json(), json!({"agent": "reviewer", "task_id": task_id}));
    let failed = get(server.address, &format!("{path}?wait_s=20")).await.json();
    assert_eq!(
        (&failed["state"], &failed["result"]["code"]),
        (&json!("failed"), &json!("stopped"))
    );
    for unknown in [uuid(), "x".to_owned()] {
        let reply = get(server.address, &format!("/v1/requests/{unknown}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"), "{unknown}");
    }
    for bad in ["0", "31", "x"] {
        let reply = get(server.address, &format!("{path}?wait_s={bad}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    server.ended().await;
}

fn uuid() -> String {
    antiphon_core::InteractionId::new().to_string()
}

#[tokio::test]
async fn waiting_for_an_answer_ends_when_the_server_shuts_down() {
    let mut server = TestServer::new().await;
    resting(&server).await;
    let id = sent(&server, json!({"request": {"intent": "x"}})).await["id"].clone();
    let path = format!("/v1/requests/{}?wait_s=30", id.as_str().unwrap());
    let address = server.address;
    let waiting = get(address, &path);
    tokio::pin!(waiting);
    tokio::select! {
        reply = &mut waiting => panic!("it was not answered yet: {reply:?}"),
        () = tokio::time::sleep(std::time::Duration::from_millis(300)) => server.stop(),
    }
    let reply = waiting.await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    server.ended().await;
}

#[tokio::test]
async fn a_rejection_has_its_reason() {
    let server = TestServer::new().await;
    let message = json!({"message": "hi"});
    let refused = |reply: &Reply, status: u16, code: &str, reason: &str| {
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{reply:?}");
        assert_eq!(reply.json()["details"]["reason"], reason, "{reply:?}");
    };
    let unknown = post(server.address, "/v1/agents/nobody/inbox", &message).await;
    refused(&unknown, 404, "NOT_FOUND", "unknown_agent");
    assert_eq!(unknown.json()["details"]["known"], "mute, reviewer");
    let mute = post(server.address, "/v1/agents/mute/inbox", &message).await;
    refused(&mute, 409, "CONFLICT", "cannot_start");
    let long = json!({"message": "x".repeat(300 * 1024)});
    refused(&post(server.address, INBOX, &long).await, 413, "INVALID_REQUEST", "too_long");
    for invalid in [
        json!({"message": "  "}),
        json!({"request": {"intent": " "}}),
        json!({"request": {"intent": "review", "params": {}}}),
        json!({"request": {"intent": "mob.peer_added", "params": {"peer": "x"}}}),
        json!({"content": {"type": "response", "in_reply_to": uuid(), "status": "completed"}}),
    ] {
        let reply = post(server.address, INBOX, &invalid).await;
        refused(&reply, 422, "INVALID_MESSAGE", "invalid");
    }
    let key = keyed(&server, &"k".repeat(201), &message).await;
    refused(&key, 422, "INVALID_MESSAGE", "invalid");
    order(server.address, "/v1/agents/reviewer/start").await;
    order(server.address, "/v1/agents/reviewer/stop").await;
    refused(&post(server.address, INBOX, &message).await, 409, "CONFLICT", "stopped");
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_interaction_is_refused() {
    let server = TestServer::new().await;
    for bad in [
        json!({}),
        json!([]),
        json!({"message": "a", "request": {"intent": "b"}}),
        json!({"message": "a", "content": {"type": "message", "body": "b"}}),
        json!({"message": 7}),
        json!({"message": "a", "mode": "shout"}),
        json!({"message": "a", "salience": "loud"}),
        json!({"message": "a", "from": "[x]"}),
        json!({"message": "a", "wake": "no"}),
        json!({"message": "a", "timeout_s": 5}),
        json!({"request": {"intent": "b"}, "timeout_s": 0}),
        json!({"request": {"intent": "b"}, "timeout_s": 604_801}),
        json!({"request": {"params": {}}}),
        json!({"from": "ci", "request": {"intent": "b"}, "timeout_s": 5}),
    ] {
        let reply = post(server.address, INBOX, &bad).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    let empty = keyed(&server, " ", &json!({"message": "a"})).await;
    assert_eq!((empty.status, empty.code().as_str()), (400, "INVALID_REQUEST"));
    let named = post(server.address, "/v1/agents/..%2Fx/inbox", &json!({"message": "a"})).await;
    assert_eq!(named.status, 404, "{named:?}");
    assert_eq!(server.orchestrator.agent_task(&name()).await.unwrap(), None);
    server.ended().await;
}

#[tokio::test]
async fn an_inbox_that_is_full_for_one_sender_accepts_another_sender() {
    let server = TestServer::new().await;
    resting(&server).await;
    for number in 0..INBOX_OF_SENDER_MAX {
        let arrival = Arrival::message(name(), Sender::User, number.to_string());
        let receipt = server.orchestrator.admit(arrival).await.unwrap();
        assert!(matches!(receipt, Receipt::Accepted { .. }), "{receipt:?}");
    }
    let full = post(server.address, INBOX, &json!({"message": "one more"})).await;
    assert_eq!((full.status, full.code().as_str()), (429, "RATE_LIMIT_EXCEEDED"));
    assert_eq!(full.json()["details"]["reason"], "sender_full");
    assert!(full.head.contains("retry-after: 1"), "{full:?}");
    sent(&server, json!({"from": "ci", "message": "another's"})).await;
    let listed = get(server.address, "/v1/inbox?limit=3").await.json();
    assert_eq!(listed["total"], INBOX_OF_SENDER_MAX + 1);
    assert_eq!(listed["waiting"].as_array().unwrap().len(), 3);
    let bodies = |page: &Value| -> Vec<String> {
        let rows = page["waiting"].as_array().unwrap().iter();
        rows.map(|row| row["content"]["body"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(bodies(&listed), ["0", "1", "2"]);
    let cursor = &listed["next_cursor"];
    assert_eq!(*cursor, listed["waiting"][2]["position"]);
    let next = get(server.address, &format!("/v1/inbox?limit=3&cursor={cursor}")).await.json();
    assert_eq!(bodies(&next), ["3", "4", "5"]);
    assert_eq!(next["total"], listed["total"]);
    let rest = get(server.address, &format!("/v1/inbox?limit=1000&cursor={cursor}")).await.json();
    assert_eq!(rest["waiting"].as_array().unwrap().len(), 1000);
    let cursor = &rest["next_cursor"];
    let last = get(server.address, &format!("/v1/inbox?limit=1000&cursor={cursor}")).await.json();
    assert_eq!(last["waiting"].as_array().unwrap().len(), INBOX_OF_SENDER_MAX - 2 - 1000);
    assert!(last["next_cursor"].is_null(), "the last page");
    server.ended().await;
}

#[tokio::test]
async fn waiting_interactions_are_listed_with_their_sender_also_when_the_agent_is_stopped() {
    let server = TestServer::new().await;
    let task_id = resting(&server).await;
    sent(&server, json!({"from": "ci", "message": "red", "salience": "urgent", "mode": "steer"}))
        .await;
    sent(&server, json!({"message": "by the way", "wake": false})).await;
    let plain = |listed: &Value| {
        let mut rows = listed["waiting"].as_array().unwrap().clone();
        for row in &mut rows {
            let row = row.as_object_mut().unwrap();
            for varying in ["id", "at"] {
                assert!(row.remove(varying).is_some_and(|value| value.is_string()));
            }
            assert!(row.remove("position").is_some_and(|value| value.is_u64()));
        }
        rows
    };
    let expected = |live: bool| {
        [
            json!({"agent": "reviewer", "live": live, "task_id": task_id, "from": "event:ci",
                "class": "plain_event", "salience": "urgent", "mode": "steer", "wakes": true,
                "handling_mode": "steer",
                "render_metadata": {"class": "external_event", "salience": "urgent"},
                "content": {"type": "message", "body": "red"},
                "rendered_text": "[EVENT via ci] red"}),
            json!({"agent": "reviewer", "live": live, "task_id": task_id, "from": "user",
                "class": "actionable_message", "salience": "normal", "mode": "queue",
                "handling_mode": "queue",
                "wakes": false, "content": {"type": "message", "body": "by the way"},
                "rendered_text": "by the way"}),
        ]
    };
    let listed = get(server.address, "/v1/inbox?agent=reviewer").await.json();
    assert_eq!(plain(&listed), expected(true));
    assert_eq!(get(server.address, "/v1/inbox").await.json(), listed);
    let mute = get(server.address, "/v1/inbox?agent=mute").await.json();
    assert_eq!(mute, json!({"waiting": [], "total": 0}));
    order(server.address, "/v1/agents/reviewer/stop").await;
    let stopped = get(server.address, "/v1/inbox").await.json();
    assert_eq!(plain(&stopped), expected(false));
    for bad in ["limit=0", "limit=1001", "agent=%5B"] {
        let reply = get(server.address, &format!("/v1/inbox?{bad}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    server.ended().await;
}

#[tokio::test]
async fn live_agents_are_listed_page_by_page() {
    let server = TestServer::new().await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let created = post(server.address, "/v1/tasks", &json!({"message": "hang"})).await;
        tasks.push(created.json()["task_id"].clone());
    }
    tasks.reverse();
    let listed = async |query: &str| -> Vec<Value> {
        let page = get(server.address, &format!("/v1/agents/status?{query}")).await.json();
        page.as_array().unwrap().iter().map(|live| live["task_id"].clone()).collect()
    };
    assert_eq!(listed("").await, tasks);
    assert_eq!(listed("limit=2").await, tasks[..2]);
    let before = tasks[1].as_str().unwrap();
    assert_eq!(listed(&format!("limit=2&before={before}")).await, tasks[2..]);
    let last = tasks[2].as_str().unwrap();
    assert_eq!(listed(&format!("before={last}")).await, Vec::<Value>::new());
    let reply = get(server.address, "/v1/agents/status?limit=1001").await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"));
    server.ended().await;
}

#[tokio::test]
async fn an_agent_is_started_and_stopped_once() {
    let server = TestServer::new().await;
    let verb = |verb: &str| format!("/v1/agents/reviewer/{verb}");
    let none = order(server.address, &verb("stop")).await;
    assert_eq!((none.status, none.json()), (200, json!({"agent": "reviewer"})));
    let started = order(server.address, &verb("start")).await.json();
    let task_id = task(&server).await;
    assert_eq!(started, json!({"agent": "reviewer", "task_id": task_id, "already": false}));
    let again = order(server.address, &verb("start")).await.json();
    assert_eq!(again, json!({"agent": "reviewer", "task_id": task_id, "already": true}));
    let status = get(server.address, "/v1/agents/status").await.json();
    let there = status.as_array().unwrap();
    assert_eq!(there.len(), 1, "{status}");
    assert_eq!(there[0]["task_id"], json!(task_id));
    assert_eq!((&there[0]["state"], &there[0]["resident"]), (&json!("idle"), &json!(true)));
    assert_eq!((&there[0]["waiting"], &there[0]["messages_processed"]), (&json!(0), &json!(0)));
    let id: antiphon_core::AgentId = serde_json::from_value(there[0]["id"].clone()).unwrap();
    assert_eq!(id.0.get_version_num(), 4, "it has an id before its first message: {status}");
    assert_eq!(get(server.address, "/v1/agents/status").await.json(), status, "it did nothing");
    let stopped = order(server.address, &verb("stop")).await.json();
    assert_eq!(stopped, json!({"agent": "reviewer", "task_id": task_id}));
    assert_eq!(get(server.address, "/v1/agents/status").await.json(), json!([]));
    let mute = order(server.address, "/v1/agents/mute/start").await;
    assert_eq!((mute.status, mute.code().as_str()), (409, "CONFLICT"));
    for verb in ["start", "stop"] {
        let reply = order(server.address, &format!("/v1/agents/nobody/{verb}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"), "{verb}");
    }
    server.ended().await;
}

#[tokio::test]
async fn many_concurrent_senders_lose_nothing() {
    let server = TestServer::new().await;
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..8 {
        let address = server.address;
        senders.spawn(async move {
            for number in 0..16 {
                let body = json!({"from": format!("s{sender}"), "message": number.to_string()});
                let reply = post(address, INBOX, &body).await;
                assert_eq!(reply.status, 202, "{reply:?}");
            }
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent.unwrap();
    }
    let id = sent(&server, json!({"request": {"intent": "barrier"}})).await["id"].clone();
    let path = format!("/v1/requests/{}?wait_s=30", id.as_str().unwrap());
    assert_eq!(get(server.address, &path).await.json()["state"], "completed");
    let waits = async || get(server.address, "/v1/inbox").await.json()["total"] != 0;
    while waits().await {
        tokio::task::yield_now().await;
    }
    let state = server.orchestrator.task(&task(&server).await).await.unwrap();
    let mut read: Vec<String> = Vec::new();
    for message in state.messages() {
        if let Message::User(user) = &**message
            && let Some(InputBlock::Text(text)) = user.content.first()
            && text.text.starts_with("[EVENT")
        {
            read.push(text.text.clone());
        }
    }
    assert_eq!(read.len(), 128);
    assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), 128, "each once");
    server.ended().await;
}

/// The blocks of the messages that the agent has read.
async fn read_blocks(server: &TestServer) -> Vec<Vec<InputBlock>> {
    let state = server.orchestrator.task(&task(server).await).await.unwrap();
    let user = |message: &Message| match message {
        Message::User(user) => Some(user.content.clone()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    };
    state.messages().iter().filter_map(|message| user(message)).collect()
}

const PIXEL: &str = "iVBORw0KGgo=";

#[tokio::test]
async fn blocks_of_an_interaction_reach_the_model() {
    let server = TestServer::new().await;
    let image = json!({"type": "image", "media_type": "image/png", "data": PIXEL});
    let text = |text: &str| json!({"type": "text", "text": text});
    for (content, from, heard) in [
        (json!({"body": "", "blocks": [text("alone")]}), None, "alone"),
        (json!({"body": "", "blocks": [text("one"), image, text("two")]}), None, "one\ntwo"),
        (json!({"body": "see this", "blocks": [text("see this"), image]}), None, "see this"),
        (json!({"body": "a\nb", "blocks": [text("a"), image, text("b")]}), None, "a\nb"),
        (
            json!({"body": "c", "blocks": [text("more"), text(" ")]}),
            Some("ci"),
            "[EVENT via ci] c\nmore",
        ),
    ] {
        let mut content = content;
        content["type"] = json!("message");
        sent(&server, json!({"content": content, "from": from})).await;
        said(&server, &format!("Done with {heard}")).await;
    }
    sent(&server, json!({"content": {"type": "message", "body": "", "blocks": [image]}})).await;
    sent(&server, json!({"message": "the end"})).await;
    said(&server, "the end").await;
    let read = read_blocks(&server).await;
    let images = |blocks: &Vec<InputBlock>| {
        blocks.iter().filter(|block| matches!(block, InputBlock::Image(_))).count()
    };
    assert_eq!(read.iter().map(images).sum::<usize>(), 4, "{read:?}");
    let blank =
        |block: &InputBlock| matches!(block, InputBlock::Text(text) if text.text.is_empty());
    assert!(!read.iter().flatten().any(blank), "no provider accepts an empty text: {read:?}");
    server.ended().await;
}

#[tokio::test]
async fn blocks_that_say_nothing_are_refused_as_an_empty_message_is() {
    let server = TestServer::new().await;
    for blocks in [json!([]), json!([{"type": "text", "text": " \n"}])] {
        let content = json!({"content": {"type": "message", "body": " ", "blocks": blocks}});
        let reply = post(server.address, INBOX, &content).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "INVALID_MESSAGE"), "{blocks}");
    }
    server.ended().await;
}

#[tokio::test]
async fn an_event_without_a_body_is_its_label() {
    let server = TestServer::new().await;
    for event in [
        json!({"from": "ci"}),
        json!({"from": "ci", "message": " \n"}),
        json!({"from": "ci", "content": {"type": "message", "body": ""}}),
    ] {
        resting(&server).await;
        sent(&server, event).await;
        let listed = get(server.address, "/v1/inbox").await.json();
        assert_eq!(listed["waiting"][0]["rendered_text"], "[EVENT via ci]");
        server.orchestrator.resume(&task(&server).await).await.unwrap();
        said(&server, "Done with [EVENT via ci]").await;
    }
    let nothing = post(server.address, INBOX, &json!({"message": ""})).await;
    assert_eq!(nothing.status, 422, "a person's message has a text: {nothing:?}");
    server.ended().await;
}

#[tokio::test]
async fn progress_replaces_progress_of_the_same_sender_that_was_not_read() {
    let server = TestServer::new().await;
    resting(&server).await;
    for (from, text) in [("ci", "10 %"), ("cd", "5 %"), ("ci", "90 %")] {
        sent(&server, json!({"from": from, "message": text, "progress": true})).await;
    }
    let listed = get(server.address, "/v1/inbox").await.json();
    let texts: Vec<&Value> =
        listed["waiting"].as_array().unwrap().iter().map(|row| &row["content"]["body"]).collect();
    assert_eq!(texts, [&json!("5 %"), &json!("90 %")]);
    assert_eq!(
        (&listed["waiting"][0]["wakes"], &listed["waiting"][0]["salience"]),
        (&json!(false), &json!("background"))
    );
    let queued = server.orchestrator.queued(NonZeroUsize::MAX).await.unwrap();
    let shown = |queued: &QueuedMessage| queued.message.render_metadata;
    assert_eq!(queued.iter().map(shown).collect::<Vec<_>>(), [Some(RenderMetadata::PROGRESS); 2]);
    for bad in [
        json!({"message": "x", "progress": true, "salience": "urgent"}),
        json!({"message": "x", "progress": true, "wake": true}),
        json!({"request": {"intent": "x"}, "progress": true}),
    ] {
        assert_eq!(post(server.address, INBOX, &bad).await.status, 400, "{bad}");
    }
    server.ended().await;
}
