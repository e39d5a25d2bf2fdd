//! Budgets of requests: new work is refused while they are spent, and only a person lets more be spent.

use std::num::NonZeroU64;

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentName, EventBody, ModelRef, Position, SpendLimits, TaskId, TaskStatus, UserMessage,
};
use antiphon_keys::{KeyHolder, Level, NewKey};
use antiphon_project::dollars;
use antiphon_runtime::NewTask;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::client::{Reply, request, say};
use crate::key_server::Keyed;
use crate::world::TOKEN;

/// Less than any answer costs.
const LITTLE: SpendLimits =
    SpendLimits { daily_nano_usd_max: NonZeroU64::new(1), monthly_nano_usd_max: None };

fn key(level: Level, spend: SpendLimits) -> NewKey {
    NewKey { spend, ..NewKey::new("somebody".parse().unwrap(), level) }
}

/// Has something done to its end, if it is taken.
async fn done(keyed: &Keyed, key: &str) -> Reply {
    let reply = keyed.ask(key, "POST", "/v1/tasks", Some(&json!({"message": "hi"}))).await;
    if reply.status == 201 {
        let task_id = serde_json::from_value(reply.json()["task_id"].clone()).unwrap();
        let state = keyed.server.orchestrator.wait(&task_id).await.unwrap();
        assert_eq!(state.status, TaskStatus::Completed);
    }
    reply
}

async fn with_name(keyed: &Keyed, path: &str, body: &Value, name: &str) -> Reply {
    named_by(keyed, TOKEN, path, body, name).await
}

async fn named_by(keyed: &Keyed, key: &str, path: &str, body: &Value, name: &str) -> Reply {
    let text = request(keyed.server.address, "POST", path, Some(&body.to_string()));
    let text = text.replacen(TOKEN, key, 1);
    let named = text.replacen("\r\n", &format!("\r\nidempotency-key: {name}\r\n"), 1);
    say(keyed.server.address, &named).await
}

fn is_spent(reply: &Reply, scope: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"), "{reply:?}");
    let details = &reply.json()["details"];
    let reported =
        (&details["cause"], &details["scope"], &details["period"], &details["limit_usd"]);
    assert_eq!(
        reported,
        (&json!("budget"), &json!(scope), &json!("day"), &json!("0.000000001")),
        "{details}"
    );
    assert!(details["spent_usd"].as_str().unwrap().parse::<f64>().unwrap() > 0.0);
    let resets_at: DateTime<Utc> = details["resets_at"].as_str().unwrap().parse().unwrap();
    let wait = reply.head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
    let wait: i64 = wait.parse().unwrap();
    let left = (resets_at - Utc::now()).num_seconds();
    assert!((wait - left).abs() < 60, "{wait} is not {left}");
}

#[tokio::test]
async fn new_tasks_are_refused_while_the_budget_is_spent() {
    let keyed = Keyed::paying(LITTLE).await;
    let hi = json!({"message": "hi"});
    let first = with_name(&keyed, "/v1/tasks", &hi, "once").await;
    assert_eq!(first.status, 201);
    let task_id = serde_json::from_value(first.json()["task_id"].clone()).unwrap();
    keyed.server.orchestrator.wait(&task_id).await.unwrap();
    is_spent(&done(&keyed, TOKEN).await, "total");
    let inbox = "/v1/agents/reviewer/inbox";
    is_spent(&keyed.ask(TOKEN, "POST", inbox, Some(&hi)).await, "total");
    // What was accepted before is answered as before.
    let again = with_name(&keyed, "/v1/tasks", &hi, "once").await;
    assert_eq!((again.status, again.json()), (200, first.json()));

    let budget = keyed.ask(TOKEN, "GET", "/v1/budget", None).await.json();
    assert_eq!(budget["total"]["day"]["limit_nano_usd"], 1);
    assert_eq!(budget["waiting"], json!([]));
    for (body, status) in [
        (json!({"usd": 0}), 400),
        (json!({"usd": -1}), 400),
        (json!({"usd": 1e300}), 400),
        (json!({"usd": "5"}), 400),
        (json!({"usd": 5, "key_id": "no id"}), 400),
        (json!({"usd": 5, "key_id": "tR7xQ2pL"}), 400),
        (json!({"usd": 5, "comment": "x".repeat(5000)}), 400),
    ] {
        let reply = keyed.ask(TOKEN, "POST", "/v1/budget/allow", Some(&body)).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
    }
    for _ in 0..2 {
        let allowed = with_name(&keyed, "/v1/budget/allow", &json!({"usd": 5}), "five").await;
        assert_eq!(allowed.status, 200, "{allowed:?}");
        assert_eq!(allowed.json()["total"]["day"]["raised_nano_usd"], 5_000_000_000_u64);
    }
    assert_eq!(done(&keyed, TOKEN).await.status, 201);
    assert_eq!(keyed.ask(TOKEN, "POST", inbox, Some(&hi)).await.status, 202);
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_that_has_spent_its_budget_sends_nothing_and_stops_no_other_key() {
    let keyed = Keyed::paying(SpendLimits::default()).await;
    let (poor, secret) = keyed.make(key(Level::Write, LITTLE));
    let other = keyed.person(Level::Write);
    assert_eq!(done(&keyed, &secret).await.status, 201);
    let refused = done(&keyed, &secret).await;
    is_spent(&refused, "key");
    assert_eq!(refused.json()["details"]["key_id"], poor.id.to_string());
    let hi = json!({"message": "hi"});
    let inbox = "/v1/agents/reviewer/inbox";
    is_spent(&keyed.ask(&secret, "POST", inbox, Some(&hi)).await, "key");
    let hangs = keyed.ask(&other, "POST", "/v1/tasks", Some(&json!({"message": "hang"}))).await;
    let task_id = hangs.json()["task_id"].as_str().unwrap().to_owned();
    let messages = format!("/v1/tasks/{task_id}/messages");
    let said = json!({"text": "retry_at_once"});
    is_spent(&keyed.ask(&secret, "POST", &messages, Some(&said)).await, "key");
    assert_eq!(keyed.ask(&other, "POST", &messages, Some(&said)).await.status, 202);
    for caller in [other.as_str(), TOKEN] {
        assert_eq!(done(&keyed, caller).await.status, 201);
    }
    // Looking costs nothing.
    let usage = keyed.ask(&secret, "GET", "/v1/usage?by=payer", None).await.json();
    let spend_limits: Vec<_> =
        usage["rows"].as_array().unwrap().iter().map(|row| &row["payer"]).collect();
    assert!(spend_limits.contains(&&json!(poor.id.to_string())), "{usage}");
    let more = json!({"usd": 100, "key_id": poor.id.to_string()});
    assert_eq!(keyed.ask(TOKEN, "POST", "/v1/budget/allow", Some(&more)).await.status, 200);
    assert_eq!(done(&keyed, &secret).await.status, 201);
    keyed.server.orchestrator.cancel(&task_id.parse().unwrap()).await.ok();
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_repeated_idempotency_key_is_answered_as_before_when_the_budget_is_spent() {
    let keyed = Keyed::paying(SpendLimits::default()).await;
    let (poor, secret) = keyed.make(key(Level::Write, LITTLE));
    let hang = keyed.ask(TOKEN, "POST", "/v1/tasks", Some(&json!({"message": "hang"}))).await;
    let task_id: TaskId = serde_json::from_value(hang.json()["task_id"].clone()).unwrap();
    let messages = format!("/v1/tasks/{task_id}/messages");
    let retry_at_once = json!({"text": "retry_at_once"});
    let said = named_by(&keyed, &secret, &messages, &retry_at_once, "said").await;
    assert_eq!(said.status, 202, "{said:?}");
    // As if the server had been cut off before it kept which tasks they are.
    let target = json!({"agent": {"type": "named", "agent_id": "reviewer"}, "message": "one"});
    let model = ModelRef::parse("scripted/test").unwrap();
    let first = NewTask {
        key: Some(IdempotencyKey(format!("http-target@{}:0:once", poor.id))),
        payer: Some(poor.id.to_string()),
        ..NewTask::new("reviewer", model, UserMessage::text("one", Utc::now()))
    };
    let first = keyed.server.orchestrator.invoke(first).await.unwrap().task_id;
    keyed.server.orchestrator.wait(&first).await.unwrap();

    is_spent(&named_by(&keyed, &secret, &messages, &retry_at_once, "other").await, "key");
    let again = named_by(&keyed, &secret, &messages, &retry_at_once, "said").await;
    assert_eq!((again.status, again.json()), (202, said.json()));
    let targets = json!({"targets": [target], "join": "detached"});
    is_spent(&named_by(&keyed, &secret, "/v1/invocations", &targets, "other").await, "key");
    let found = named_by(&keyed, &secret, "/v1/invocations", &targets, "once").await;
    assert_eq!((found.status, &found.json()["task_ids"]), (202, &json!([first])), "{found:?}");
    keyed.server.orchestrator.cancel(&task_id).await.unwrap();
    keyed.server.ended().await;
}

#[tokio::test]
async fn only_a_person_with_an_admin_key_raises_a_spend_limit() {
    let keyed = Keyed::paying(LITTLE).await;
    let agents = NewKey {
        holder: KeyHolder::Agent(AgentName::parse("reviewer").unwrap()),
        ..key(Level::Write, SpendLimits::default())
    };
    let five = json!({"usd": 5, "comment": "go on"});
    for (new, status) in [
        (agents, 403),
        (key(Level::Read, SpendLimits::default()), 403),
        (key(Level::Write, SpendLimits::default()), 403),
        (key(Level::Admin, SpendLimits::default()), 200),
    ] {
        let (made, secret) = keyed.make(new);
        let reply = keyed.ask(&secret, "POST", "/v1/budget/allow", Some(&five)).await;
        assert_eq!(reply.status, status, "{made:?}");
        assert_eq!(keyed.ask(&secret, "GET", "/v1/budget", None).await.status, 200);
    }
    let mut events = keyed.server.orchestrator.follow(None, Position(0));
    let raised = loop {
        if let EventBody::BudgetRaised(raised) = events.next().await.unwrap().body {
            break raised;
        }
    };
    assert_eq!((raised.nano_usd, raised.payer), (5_000_000_000, None));
    assert!(raised.by.starts_with("http, key "), "{}", raised.by);
    assert_eq!(raised.comment.as_deref(), Some("go on"));
    keyed.server.ended().await;
}

#[test]
fn dollars_have_no_more_digits_than_they_need() {
    for (nano_usd, text) in
        [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (20_000_000_000, "20")]
    {
        assert_eq!(dollars(antiphon_core::Cost { nano_usd }), text);
    }
}
