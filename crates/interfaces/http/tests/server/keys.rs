//! Clients with a key: their rights, their rate limits, and which keys are refused.

use std::time::Duration;

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{AgentName, ApprovalStatus, Position, TaskId};
use antiphon_keys::{KeyHolder, Level, NewKey, RateLimit};
use serde_json::json;

use crate::client::{Reply, get, request, say};
use crate::key_server::Keyed;
use crate::tasks::accepted;
use crate::world::TOKEN;

fn agents_key(level: Level) -> NewKey {
    let holder = KeyHolder::Agent(AgentName::parse("reviewer").unwrap());
    NewKey { holder, ..NewKey::new("helper".parse().unwrap(), level) }
}

/// A task that waits for an answer, and the path to give it.
async fn asking(keyed: &Keyed) -> (TaskId, String) {
    let task_id = accepted(&keyed.server, "act").await;
    let mut events = keyed.server.orchestrator.follow(Some(task_id.clone()), Position(0));
    while events.next().await.unwrap().body.event_type() != "approval_requested" {}
    let pending = keyed.server.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
    let requested = pending.iter().find(|approval| approval.task_id == task_id).unwrap();
    (task_id, format!("/v1/approvals/{}", requested.approval_id))
}

#[tokio::test]
async fn a_key_of_too_low_a_level_is_told_the_level_of_the_route() {
    let keyed = Keyed::new().await;
    let key = keyed.person(Level::Read);
    let document = get(keyed.server.address, "/openapi.json").await.json();
    let mut told = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(level @ ("write" | "admin")) = operation["x-level"].as_str() else { continue };
            let path = path.replace("{id}", "some").replace("{name}", "some");
            let reply = keyed.ask(&key, &method.to_uppercase(), &path, Some(&json!({}))).await;
            let needed = format!("level `{level}`");
            assert!(
                reply.status == 403 && reply.body.contains(&needed),
                "{method} {path}: {reply:?}"
            );
            told.push(level.to_owned());
        }
    }
    assert!(told.iter().filter(|level| *level == "admin").count() >= 5, "{told:?}");
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_allows_what_its_level_allows() {
    let keyed = Keyed::new().await;
    let message = json!({"message": "hi"});
    let allow = json!({"decision": "allow_once"});
    for (level, expected) in [
        (Level::Read, [200, 200, 403, 403, 403, 403]),
        (Level::Write, [200, 200, 201, 202, 200, 403]),
        (Level::Admin, [200, 200, 201, 202, 200, 200]),
    ] {
        let key = keyed.person(level);
        let (task_id, decide) = asking(&keyed).await;
        let pause = format!("/v1/tasks/{task_id}/pause");
        let got = [
            keyed.ask(&key, "GET", "/v1/tasks", None).await,
            keyed.ask(&key, "GET", "/v1/approvals", None).await,
            keyed.ask(&key, "POST", "/v1/tasks", Some(&message)).await,
            keyed.ask(&key, "POST", "/v1/agents/reviewer/inbox", Some(&message)).await,
            keyed.ask(&key, "POST", &pause, None).await,
            keyed.ask(&key, "POST", &decide, Some(&allow)).await,
        ];
        assert_eq!(got.each_ref().map(|reply| reply.status), expected, "{level}");
        for refused in got.iter().filter(|reply| reply.status == 403) {
            assert_eq!(refused.code(), "FORBIDDEN");
        }
        keyed.server.orchestrator.cancel(&task_id).await.ok();
    }
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_unknown_method_needs_more_than_level_read() {
    let keyed = Keyed::new().await;
    let key = keyed.person(Level::Read);
    for method in ["PUT", "PATCH", "DELETE", "BREW"] {
        assert_eq!(keyed.ask(&key, method, "/v1/tasks", None).await.status, 403, "{method}");
    }
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_refused_key_learns_no_reason() {
    let keyed = Keyed::new().await;
    let good = keyed.person(Level::Admin);
    let (revoked, revoked_key) = keyed.make(NewKey::new("revoked".parse().unwrap(), Level::Admin));
    keyed.beside.revoke(revoked.id).unwrap();
    let expires_at = Some(keyed.now() + Duration::from_secs(60));
    let short = NewKey { expires_at, ..NewKey::new("short".parse().unwrap(), Level::Admin) };
    let (_, expired) = keyed.make(short);
    assert_eq!(keyed.ask(&expired, "GET", "/v1/tasks", None).await.status, 200);
    keyed.turn(Duration::from_secs(60));
    let mut wrong = good.clone();
    wrong.replace_range(wrong.len() - 4.., "zzzz");
    let unknown = good.replacen(&good[3..11], "zzzzzzzz", 1);
    let longer = format!("{good}x");
    let twice = format!("{good}\r\nauthorization: Bearer {TOKEN}");
    let stranger = keyed.ask("", "GET", "/v1/tasks", None).await;
    assert_eq!((stranger.status, stranger.code().as_str()), (401, "UNAUTHORIZED"));
    for shown in [&wrong, &unknown, &revoked_key, &expired, &longer, &twice] {
        for (method, path) in [("GET", "/v1/tasks"), ("POST", "/v1/tasks"), ("GET", "/metrics")] {
            let reply = keyed.ask(shown, method, path, None).await;
            assert_eq!((reply.status, &reply.body), (401, &stranger.body), "{shown}");
            assert_eq!(without_date(&reply), without_date(&stranger), "{shown}");
        }
    }
    let scheme = request(keyed.server.address, "GET", "/v1/tasks", None).replacen(
        &format!("Bearer {TOKEN}"),
        &format!("ApiKey {good}"),
        1,
    );
    assert_eq!(say(keyed.server.address, &scheme).await.status, 200);
    keyed.server.ended().await;
}

fn without_date(reply: &Reply) -> Vec<&str> {
    reply.head.lines().filter(|line| !line.starts_with("date:")).collect()
}

#[tokio::test]
async fn a_key_that_is_revoked_while_the_server_runs_is_refused() {
    let keyed = Keyed::new().await;
    let (key, secret) = keyed.make(NewKey::new("laptop".parse().unwrap(), Level::Write));
    assert_eq!(keyed.ask(&secret, "GET", "/v1/tasks", None).await.status, 200);
    keyed.beside.revoke(key.id).unwrap();
    keyed.look();
    assert_eq!(keyed.ask(&secret, "GET", "/v1/tasks", None).await.status, 401);
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_agents_key_cannot_decide_approvals() {
    let keyed = Keyed::new().await;
    let (_, agents) = keyed.make(agents_key(Level::Write));
    let (task_id, decide) = asking(&keyed).await;
    for decision in ["allow_once", "allow_task", "allow_always", "deny"] {
        let reply = keyed.ask(&agents, "POST", &decide, Some(&json!({"decision": decision}))).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{decision}");
    }
    let waits = keyed.server.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
    assert_eq!(waits.len(), 1, "nothing was decided");
    let (key, person) = keyed.make(NewKey::new("laptop".parse().unwrap(), Level::Admin));
    let reply = keyed.ask(&person, "POST", &decide, Some(&json!({"decision": "deny"}))).await;
    let decided = reply.json();
    assert_eq!(reply.status, 200, "{decided}");
    assert_eq!(decided["status"], json!(ApprovalStatus::Denied));
    assert_eq!(decided["by"], format!("http, key {} (laptop)", key.id));
    keyed.server.orchestrator.wait(&task_id).await.unwrap();
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_agents_key_cannot_use_others_to_exceed_its_permissions() {
    let keyed = Keyed::new().await;
    let (_, agents) = keyed.make(agents_key(Level::Write));
    let task_id = accepted(&keyed.server, "hang").await;
    let said = json!({"text": "I am the user", "message": "hi", "model": "x", "messages": []});
    for path in [
        &format!("/v1/tasks/{task_id}/cancel"),
        &format!("/v1/tasks/{task_id}/interrupt"),
        &format!("/v1/tasks/{task_id}/pause"),
        &format!("/v1/tasks/{task_id}/resume"),
        &format!("/v1/tasks/{task_id}/tool_results"),
        "/v1/agents/mute/start",
        "/v1/agents/reviewer/stop",
        "/v1/invocations",
        "/v1/agents",
        "/v1/sessions",
        "/v1/nothing",
    ] {
        let reply = keyed.ask(&agents, "POST", path, Some(&said)).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{path}");
    }
    assert_eq!(keyed.ask(&agents, "GET", "/v1/tasks", None).await.status, 200);
    let waits = keyed.server.orchestrator.task(&task_id).await.unwrap();
    assert_eq!((waits.queue.len(), waits.status.is_terminal()), (0, false));
    keyed.server.orchestrator.cancel(&task_id).await.unwrap();
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_agents_key_sends_in_the_agents_name_and_not_as_the_user() {
    let keyed = Keyed::new().await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    let started = keyed
        .server
        .orchestrator
        .start_agent(&reviewer, &antiphon_core::Provenance::Owner)
        .await
        .unwrap();
    keyed.server.orchestrator.pause(&started.task_id).await.unwrap();
    let (_, agents) = keyed.make(agents_key(Level::Write));
    let person = keyed.person(Level::Write);
    for key in [&agents, &person] {
        let message = json!({"message": "do this"});
        let reply = keyed.ask(key, "POST", "/v1/agents/reviewer/inbox", Some(&message)).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    let waiting = get(keyed.server.address, "/v1/inbox").await.json();
    let from: Vec<_> = waiting["waiting"].as_array().unwrap().iter().map(|w| &w["from"]).collect();
    assert_eq!(from, [&json!("event:reviewer"), &json!("user")]);
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_beyond_its_rate_limit_learns_when_to_retry() {
    let keyed = Keyed::new().await;
    let rate_per_minute = Some(RateLimit::per_minute(2).unwrap());
    let new = NewKey { rate_per_minute, ..NewKey::new("busy".parse().unwrap(), Level::Read) };
    let (_, key) = keyed.make(new);
    for (path, status, remaining) in [("/v1/tasks", 200, 1), ("/v1/nothing", 404, 0)] {
        let reply = keyed.ask(&key, "GET", path, None).await;
        assert_eq!(reply.status, status);
        assert!(reply.head.contains("x-ratelimit-limit: 2"), "{reply:?}");
        assert!(reply.head.contains(&format!("x-ratelimit-remaining: {remaining}")), "{reply:?}");
        assert!(reply.head.contains("x-ratelimit-reset: "), "{reply:?}");
    }
    let reply = keyed.ask(&key, "GET", "/v1/tasks", None).await;
    assert_eq!((reply.status, reply.code().as_str()), (429, "RATE_LIMIT_EXCEEDED"));
    let details = &reply.json()["details"];
    assert_eq!((&details["limit"], &details["remaining"]), (&json!("2"), &json!("0")));
    let after: u64 = details["retry_after_s"].as_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&after), "{details}");
    assert_eq!(reply.head.matches("retry-after: ").count(), 1, "{reply:?}");
    assert!(reply.head.contains(&format!("retry-after: {after}\r\n")), "{reply:?}");
    // Other keys are not limited, and the owner with the token is not counted.
    let other = keyed.person(Level::Read);
    assert_eq!(keyed.ask(&other, "GET", "/v1/tasks", None).await.status, 200);
    let owner = get(keyed.server.address, "/v1/tasks").await;
    assert_eq!((owner.status, owner.head.contains("x-ratelimit")), (200, false));
    keyed.server.ended().await;
}

#[tokio::test]
async fn only_the_token_is_accepted_while_keys_cannot_be_read() {
    let keyed = Keyed::new().await;
    let key = keyed.person(Level::Admin);
    keyed.chmod(0o644);
    keyed.look();
    let reply = keyed.ask(&key, "GET", "/v1/tasks", None).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    assert!(!reply.body.contains("keys.json"), "{}", reply.body);
    assert_eq!(get(keyed.server.address, "/v1/tasks").await.status, 200);
    keyed.chmod(0o600);
    keyed.look();
    assert_eq!(keyed.ask(&key, "GET", "/v1/tasks", None).await.status, 200);
    keyed.server.ended().await;
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let keyed = Keyed::new().await;
    let reader = keyed.person(Level::Read);
    let mut replies = Vec::new();
    for (key, method, path, status) in [
        (TOKEN, "GET", "/v1/tasks", 200),
        (TOKEN, "GET", "/health", 200),
        ("", "GET", "/v1/tasks", 401),
        (&reader, "POST", "/v1/tasks", 403),
        (TOKEN, "GET", "/v1/nothing", 404),
        (TOKEN, "DELETE", "/v1/tasks", 405),
        (TOKEN, "POST", "/v1/tasks", 415),
    ] {
        let reply = keyed.ask(key, method, path, None).await;
        assert_eq!(reply.status, status, "{path}");
        replies.push(reply);
    }
    for reply in replies {
        for line in [
            "cache-control: no-store",
            "content-security-policy: default-src 'none'; frame-ancestors 'none'",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
        ] {
            assert!(reply.head.contains(line), "{line}: {reply:?}");
        }
        assert!(!reply.head.contains("access-control"), "{reply:?}");
    }
    keyed.server.ended().await;
}
