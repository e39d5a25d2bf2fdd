//! A key that loses its access while something is open with it, a key that opens too much, and clients that
//! guess keys.

use std::time::{Duration, Instant};

use antiphon_core::AgentName;
use antiphon_interface_transport::ServerLimits;
use antiphon_keys::{KeyHolder, Level, NewKey};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Reply, get, request, say};
use crate::key_server::Keyed;
use crate::tasks::accepted;
use crate::world::{TOKEN, TestServer};

/// How long a change of a key may take to end what is open with it.
const A_SECOND: Duration = Duration::from_secs(1);

/// How many requests [`everything`] opens.
const OPEN: usize = 6;

/// A connection that has sent a request with a key.
struct Open {
    socket: TcpStream,
    heard: Vec<u8>,
}

impl Open {
    async fn send(keyed: &Keyed, key: &str, text: &str) -> Self {
        let mut socket = TcpStream::connect(keyed.server.address).await.unwrap();
        socket.write_all(text.replacen(TOKEN, key, 1).as_bytes()).await.unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// Reads until the text is there.
    async fn until(mut self, text: &str) -> Self {
        while !String::from_utf8_lossy(&self.heard).contains(text) {
            let mut bytes = [0; 4096];
            let count = self.socket.read(&mut bytes).await.unwrap();
            assert!(count > 0, "ended: {}", String::from_utf8_lossy(&self.heard));
            self.heard.extend_from_slice(&bytes[..count]);
        }
        self
    }

    /// Reads to the end of the connection, which must come within a second.
    async fn ended(mut self, what: &str) -> Reply {
        let begun = Instant::now();
        let end = self.socket.read_to_end(&mut self.heard);
        let ended = tokio::time::timeout(Duration::from_secs(10), end).await;
        assert!(ended.is_ok(), "{what} stays open");
        assert!(begun.elapsed() < A_SECOND, "{what} stayed open for {:?}", begun.elapsed());
        Reply::read(&String::from_utf8_lossy(&self.heard))
    }

    /// Whether the connection is open for longer than a key is checked.
    async fn stays_open(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let end = Instant::now() + A_SECOND;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.socket.read(&mut bytes)).await {
                Err(_) => return true,
                Ok(Ok(count)) if count > 0 => {}
                Ok(_) => return false,
            }
        }
    }
}

/// Everything that stays open: event streams of a task and of the journal, a streamed completion, a whole one, a
/// request that waits, and a body that is half sent.
async fn everything(keyed: &Keyed, key: &str, task: &str) -> Vec<(&'static str, Open)> {
    let address = keyed.server.address;
    let get = |path: &str| request(address, "GET", path, None);
    let chat = |stream: bool| {
        let messages = json!([{"role": "user", "content": "hang"}]);
        let body = json!({"model": "reviewer", "stream": stream, "messages": messages});
        request(address, "POST", "/v1/chat/completions", Some(&body.to_string()))
    };
    let half = request(address, "POST", "/v1/tasks", Some(&"x".repeat(1000)));
    let open = |text: String| async move { Open::send(keyed, key, &text).await };
    let events = open(get(&format!("/v1/tasks/{task}/events"))).await.until("tool_started").await;
    let journal = open(get("/v1/events?after=0")).await.until("tool_started").await;
    let streamed = open(chat(true)).await;
    let whole = open(chat(false)).await;
    let waits = open(get(&format!("/v1/tasks/{task}/rest?wait_s=30"))).await;
    let half = open(half[..half.len() - 500].to_owned()).await;
    // The server has them all when it refuses one more.
    keyed.retry(key, "/v1/tasks", 200).await;
    vec![
        ("a task's events", events),
        ("the journal's events", journal),
        ("a streamed completion", streamed),
        ("a whole completion", whole),
        ("a waiting request", waits),
        ("a half-sent body", half),
    ]
}

async fn everything_ends(keyed: &Keyed, open: Vec<(&'static str, Open)>) {
    let begun = Instant::now();
    for (what, open) in open {
        let reply = open.ended(what).await;
        // Chat completions have OpenAI's code.
        let codes = ["UNAUTHORIZED", "invalid_api_key"];
        let is_refused = || reply.status == 401 && codes.contains(&reply.code().as_str());
        assert!(reply.status == 200 || is_refused(), "{what}: {reply:?}");
    }
    assert!(begun.elapsed() < A_SECOND, "{:?}", begun.elapsed());
    assert_eq!(get(keyed.server.address, "/v1/tasks").await.status, 200, "the owner goes on");
}

#[tokio::test]
async fn whatever_takes_the_access_of_a_key_ends_all_that_is_open_with_it_within_a_second() {
    let keyed =
        Keyed::with(ServerLimits { requests_per_key_max: OPEN, ..ServerLimits::default() }).await;
    let task = accepted(&keyed.server, "hang").await.to_string();
    let new = || NewKey::new("open".parse().unwrap(), Level::Write);
    let mut owner =
        Open::send(&keyed, TOKEN, &request(keyed.server.address, "GET", "/v1/events", None))
            .await
            .until("\r\n\r\n")
            .await;

    let (key, revoked) = keyed.make(new());
    let open = everything(&keyed, &revoked, &task).await;
    keyed.beside.revoke(key.id).unwrap();
    keyed.look();
    everything_ends(&keyed, open).await;

    let minute = Duration::from_secs(60);
    let (_, expiring) = keyed.make(NewKey { expires_at: Some(keyed.now() + minute), ..new() });
    let open = everything(&keyed, &expiring, &task).await;
    keyed.turn(minute);
    everything_ends(&keyed, open).await;

    let (key, rotated) = keyed.make(new());
    let open = everything(&keyed, &rotated, &task).await;
    keyed.beside.rotate(key.id, Duration::ZERO).unwrap();
    keyed.look();
    everything_ends(&keyed, open).await;

    let (_, downgraded) = keyed.make(new());
    let open = everything(&keyed, &downgraded, &task).await;
    keyed.edit("\"level\":\"write\"", "\"level\":\"read\"");
    everything_ends(&keyed, open).await;

    let (_, passed_on) = keyed.make(new());
    let open = everything(&keyed, &passed_on, &task).await;
    keyed.edit("\"level\":\"write\"", "\"level\":\"write\",\"holder\":{\"agent\":\"reviewer\"}");
    everything_ends(&keyed, open).await;

    let (_, unreadable) = keyed.make(new());
    let open = everything(&keyed, &unreadable, &task).await;
    keyed.chmod(0o644);
    keyed.look();
    everything_ends(&keyed, open).await;
    keyed.chmod(0o600);

    assert!(owner.stays_open().await, "the owner's stream is not affected");
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_stream_of_a_revoked_key_ends_also_when_its_client_reads_nothing() {
    let keyed = Keyed::new().await;
    let task = accepted(&keyed.server, "shout").await;
    keyed.server.orchestrator.wait(&task).await.unwrap();
    let (key, secret) = keyed.make(NewKey::new("stalled".parse().unwrap(), Level::Read));
    let path = format!("/v1/tasks/{task}/events");
    let text = request(keyed.server.address, "GET", &path, None);
    let mut open = Open::send(&keyed, &secret, &text).await.until("\r\n\r\n").await;
    // The answer has sixteen million bytes: the server waits for the client.
    keyed.beside.revoke(key.id).unwrap();
    keyed.look();
    tokio::time::sleep(A_SECOND).await;
    let _ = open.socket.read_to_end(&mut open.heard).await;
    let heard = open.heard.len();
    assert!(heard < 12_000_000, "the rest came after the key was revoked: {heard} bytes");
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_that_keeps_its_access_keeps_its_streams_when_other_keys_change() {
    let keyed = Keyed::new().await;
    let task = accepted(&keyed.server, "hang").await;
    let (key, secret) = keyed.make(NewKey::new("stays".parse().unwrap(), Level::Read));
    let path = format!("/v1/tasks/{task}/events");
    let text = request(keyed.server.address, "GET", &path, None);
    let mut open = Open::send(&keyed, &secret, &text).await.until("tool_started").await;
    let (other, _) = keyed.make(NewKey::new("other".parse().unwrap(), Level::Admin));
    keyed.beside.revoke(other.id).unwrap();
    keyed.beside.rotate(key.id, Duration::from_secs(3600)).unwrap();
    keyed.look();
    assert!(open.stays_open().await);
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_has_a_limited_number_of_open_streams_and_the_owner_always_finds_one() {
    let limits =
        ServerLimits { requests_per_key_max: 3, streams_max: 8, ..ServerLimits::default() };
    let keyed = Keyed::with(limits).await;
    let task = accepted(&keyed.server, "hang").await;
    let path = format!("/v1/tasks/{task}/events");
    let text = request(keyed.server.address, "GET", &path, None);
    let wait = request(keyed.server.address, "GET", &format!("/v1/tasks/{task}/rest"), None);
    let first = keyed.person(Level::Read);
    let mut open = Vec::new();
    for text in [&text, &text] {
        open.push(Open::send(&keyed, &first, text).await.until("tool_started").await);
    }
    let waiting = Open::send(&keyed, &first, &wait).await;
    let refused = loop {
        let reply = keyed.ask(&first, "GET", "/v1/tasks", None).await;
        // Until the waiting request has arrived.
        if reply.status != 200 {
            break reply;
        }
    };
    assert_eq!((refused.status, refused.code().as_str()), (429, "RATE_LIMIT_EXCEEDED"));
    assert!(refused.body.contains("close one"), "{}", refused.body);
    assert!(refused.head.contains("retry-after: "), "{refused:?}");
    // Other keys are not affected, but all keys together leave a quarter of the streams.
    for _ in 0..2 {
        let other = keyed.person(Level::Read);
        for _ in 0..2 {
            open.push(Open::send(&keyed, &other, &text).await.until("tool_started").await);
        }
    }
    let other = keyed.person(Level::Read);
    let reply = keyed.ask(&other, "GET", &path, None).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    for _ in 0..2 {
        open.push(Open::send(&keyed, TOKEN, &text).await.until("tool_started").await);
    }
    drop(waiting);
    drop(open);
    let reply = keyed.retry(&first, "/v1/tasks", 429).await;
    assert_eq!(reply.status, 200, "closed requests are not counted");
    keyed.server.ended().await;
}

#[tokio::test]
async fn wrong_keys_are_throttled_and_right_ones_are_not() {
    let limits = ServerLimits { wrong_keys_per_minute: 5, ..ServerLimits::default() };
    let keyed = Keyed::with(limits).await;
    let good = keyed.person(Level::Read);
    let mut wrong = good.clone();
    wrong.replace_range(wrong.len() - 4.., "zzzz");
    let mut replies = Vec::new();
    for guess in [&wrong, "nonsense", &TOKEN[1..], &wrong, "", &wrong, &wrong, &wrong] {
        replies.push(keyed.ask(guess, "GET", "/v1/tasks", None).await);
    }
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429, 429]);
    let last = replies.last().unwrap();
    assert_eq!(last.code(), "RATE_LIMIT_EXCEEDED");
    assert!(last.head.contains("connection: close"), "{last:?}");
    let after = last.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    assert!((1..=12).contains(&after.unwrap().parse::<u64>().unwrap()), "{last:?}");
    let details = last.json()["details"].clone();
    assert_eq!(details["retry_after_s"].as_str(), after, "{details}");
    assert_eq!((&details["limit"], &details["remaining"]), (&json!("5"), &json!("0")), "{details}");
    assert!(details["reset_at"].is_string(), "{details}");
    for right in [TOKEN, &good] {
        assert_eq!(keyed.ask(right, "GET", "/v1/tasks", None).await.status, 200, "{right}");
    }
    // No credentials are no guess.
    let nothing = format!("GET /v1/tasks HTTP/1.0\r\nhost: {}\r\n\r\n", keyed.server.address);
    assert_eq!(say(keyed.server.address, &nothing).await.status, 401);
    assert_eq!(get(keyed.server.address, "/health").await.status, 200);
    keyed.server.ended().await;
}

#[tokio::test]
async fn wrong_tokens_are_throttled_without_keys_too_and_in_total() {
    let limits = ServerLimits { wrong_keys_per_minute_total: 2, ..ServerLimits::default() };
    let server = TestServer::with(limits).await;
    let wrong = request(server.address, "GET", "/v1/tasks", None).replacen(TOKEN, "guess", 1);
    for expected in [401, 401, 429] {
        assert_eq!(say(server.address, &wrong).await.status, expected);
    }
    assert_eq!(get(server.address, "/v1/tasks").await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn half_sent_bodies_of_keys_have_a_memory_bound_and_leave_the_owner_a_part() {
    let limits = ServerLimits { body_bytes_total_max: 400_000, ..ServerLimits::default() };
    let keyed = Keyed::with(limits).await;
    let key = keyed.person(Level::Write);
    let body = json!({"message": "x".repeat(100_000)}).to_string();
    let text = request(keyed.server.address, "POST", "/v1/tasks", Some(&body));
    let mut half = Vec::new();
    for _ in 0..8 {
        half.push(Open::send(&keyed, &key, &text[..text.len() - 2]).await);
    }
    // Three bodies fit into the part of the keys: the others are refused while these wait for their end.
    let mut refused = 0;
    for open in &mut half {
        let mut bytes = [0; 4096];
        let read = tokio::time::timeout(Duration::from_millis(300), open.socket.read(&mut bytes));
        if let Ok(Ok(count)) = read.await {
            let reply = Reply::read(&String::from_utf8_lossy(&bytes[..count]));
            assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
            assert!(reply.head.contains("retry-after: "), "{reply:?}");
            refused += 1;
        }
    }
    assert!(refused >= 5, "{refused} of 8 were refused");
    let short = json!({"message": "x".repeat(50_000)}).to_string();
    let owner = request(keyed.server.address, "POST", "/v1/tasks", Some(&short));
    assert_eq!(say(keyed.server.address, &owner).await.status, 201);
    drop(half);
    let whole = keyed.retry_post(&key, &json!({"message": "x".repeat(100_000)}), 503).await;
    assert_eq!(whole.status, 201, "{whole:?}");
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_agents_key_that_loses_its_agent_loses_its_streams() {
    let keyed = Keyed::new().await;
    let task = accepted(&keyed.server, "hang").await;
    let holder = KeyHolder::Agent(AgentName::parse("reviewer").unwrap());
    let new = NewKey { holder, ..NewKey::new("helper".parse().unwrap(), Level::Read) };
    let (key, secret) = keyed.make(new);
    let path = format!("/v1/tasks/{task}/events");
    let text = request(keyed.server.address, "GET", &path, None);
    let open = Open::send(&keyed, &secret, &text).await.until("tool_started").await;
    keyed.beside.revoke(key.id).unwrap();
    keyed.look();
    open.ended("an agent's stream").await;
    keyed.server.ended().await;
}
