//! Invocations at the top: all targets or none, once, and answered as they are joined.

use antiphon_core::TaskId;
use serde_json::{Value, json};

use crate::client::{Reply, get, post, post_as};
use crate::world::TestServer;

const INVOCATIONS: &str = "/v1/invocations";

fn named(agent: &str, message: &str) -> Value {
    json!({"agent": {"type": "named", "agent_id": agent}, "message": message})
}

async fn tasks(server: &TestServer) -> usize {
    get(server.address, "/v1/tasks?limit=1000").await.json()["tasks"].as_array().unwrap().len()
}

fn ids(reply: &Reply) -> Vec<TaskId> {
    assert_eq!(reply.status, 202, "{reply:?}");
    let body = reply.json();
    assert_eq!(body["kind"], "task_ids");
    let ids = body["task_ids"].as_array().unwrap();
    ids.iter().map(|id| TaskId::parse(id.as_str().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn a_result_has_the_shape_of_its_join() {
    let server = TestServer::new().await;
    let one = json!({"targets": [named("reviewer", "one")]});
    let reply = post(server.address, INVOCATIONS, &one).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = reply.json();
    assert_eq!((&body["kind"], &body["result"]["status"]), (&json!("scalar"), &json!("completed")));
    assert_eq!(body["result"]["content"], "Done with one");
    let all = json!({"targets": [named("reviewer", "one"), named("mute", "two")], "join": "all"});
    let body = post(server.address, INVOCATIONS, &all).await.json();
    assert_eq!(body["kind"], "vector");
    let contents: Vec<&Value> =
        body["results"].as_array().unwrap().iter().map(|result| &result["content"]).collect();
    assert_eq!(contents, ["Done with one", "Done with two"], "in the order of the targets");
    let detached = json!({"targets": [named("reviewer", "hang")], "join": "detached"});
    let [task_id] = ids(&post(server.address, INVOCATIONS, &detached).await).try_into().unwrap();
    server.orchestrator.cancel(&task_id).await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn an_invocation_that_has_not_ended_in_time_returns_its_task_ids() {
    let server = TestServer::new().await;
    let targets = [named("reviewer", "hang"), named("reviewer", "act")];
    let body = json!({"targets": targets, "join": "all"});
    let made = ids(&post(server.address, &format!("{INVOCATIONS}?wait_s=1"), &body).await);
    assert_eq!(made.len(), 2);
    for task_id in made {
        server.orchestrator.cancel(&task_id).await.unwrap();
    }
    server.ended().await;
}

#[tokio::test]
async fn an_ad_hoc_agent_has_the_common_system_prompt_and_its_own() {
    let server = TestServer::new().await;
    let agent = json!({"type": "ad_hoc", "system_prompt": "Count.", "tools": ["look", "act"]});
    let tools = json!({"kind": "exact", "tools": ["act", "hang"]});
    let target = json!({"agent": agent, "message": "hello", "timeout_s": 9});
    let body = json!({"targets": [target], "tools": tools});
    let result = post(server.address, INVOCATIONS, &body).await.json()["result"].clone();
    let task_id = TaskId::parse(result["task_id"].as_str().unwrap()).unwrap();
    let created = server.orchestrator.task(&task_id).await.unwrap().created;
    assert_eq!(created.agent, "ad_hoc");
    assert_eq!(created.system_prompt, "You are an agent.\n\nCount.");
    let own = Some(vec!["look".to_owned(), "act".to_owned()]);
    assert_eq!(created.tools, own, "a policy takes none of them away");
    assert!(created.agents.allows_none(), "`call_agent` is not among its tools");
    assert_eq!(created.limits.wall_clock_s_max.unwrap().get(), 9);
    server.ended().await;
}

#[tokio::test]
async fn a_policy_touches_no_tool_of_a_named_agent_and_a_message_needs_no_timestamp() {
    let server = TestServer::new().await;
    for (tools, message) in [
        (json!({"kind": "none"}), json!({"content": [{"type": "text", "text": "hello"}]})),
        (
            json!({"kind": "exact", "tools": ["act"]}),
            json!({"role": "user", "parts": [{"text": "hello"}]}),
        ),
    ] {
        let target =
            json!({"agent": {"type": "named", "agent_id": "reviewer"}, "message": message});
        let body = json!({"targets": [target], "tools": tools});
        let reply = post(server.address, INVOCATIONS, &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["result"]["content"], "Done with hello");
        let requested = server.task_factory.requested.lock().unwrap().pop().unwrap();
        assert_eq!((requested.tools, requested.agents), (None, None), "{tools}");
    }
    let body = json!({"message": {"role": "user", "parts": ["hello"]}, "agent": "reviewer"});
    let reply = post(server.address, "/v1/tasks", &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_top_level_invocation_is_refused_and_creates_no_task() {
    let server = TestServer::new().await;
    let one = || vec![named("reviewer", "x")];
    let many = vec![named("reviewer", "x"); 257];
    let ad_hoc = json!({"agent": {"type": "ad_hoc", "system_prompt": " "}, "message": "x"});
    let mut lent = named("reviewer", "x");
    lent["tools"] = json!({"kind": "exact", "tools": ["saw"]});
    let sawing = json!({"type": "ad_hoc", "system_prompt": "Saw.", "tools": ["saw"]});
    let sawing = json!({"agent": sawing, "message": "x"});
    let schema = json!({"agent": {"type": "named", "agent_id": "mute"}, "message": "x",
        "output_schema": {"type": "nonsense"}});
    let remote = json!({"kind": "force", "type": "remote", "runner": {"kind": "moon"}});
    for (body, status, named) in [
        (json!({}), 400, "targets"),
        (json!({"targets": []}), 422, "at least one"),
        (json!({"targets": [named("reviewer", "x"), named("mute", "y")]}), 422, "exactly 1"),
        (json!({"targets": many, "join": "all"}), 400, "256"),
        (json!({"targets": one(), "context": "inherited"}), 422, "inherited"),
        (json!({"targets": one(), "context": "shared"}), 422, "shared"),
        (json!({"targets": one(), "context": "nonsense"}), 400, "nonsense"),
        (json!({"targets": one(), "join": "any"}), 422, "any"),
        (json!({"targets": one(), "join": {"quorum": {"n": 1}}}), 422, "quorum"),
        (json!({"targets": [named(" ", "x")]}), 422, "agent_id"),
        (json!({"targets": [ad_hoc]}), 422, "system_prompt"),
        (json!({"targets": [named("reviewer", " ")]}), 400, "targets[0]"),
        (
            json!({"targets": one(), "tools": {"kind": "exact", "tools": ["look", "saw"]}}),
            422,
            "`saw`",
        ),
        (json!({"targets": [lent]}), 422, "`saw`"),
        (json!({"targets": [sawing]}), 422, "look, act, hang"),
        (json!({"targets": one(), "tools": {"kind": "some"}}), 400, "`inherit`, `exact`, `none`"),
        (json!({"targets": one(), "executor": remote}), 422, "moon"),
        (
            json!({"targets": [named("reviewer", "x"), named("nobody", "y")], "join": "all"}),
            404,
            "targets[1]",
        ),
        (json!({"targets": [named("reviewer", "x"), schema], "join": "all"}), 400, "targets[1]"),
    ] {
        let reply = post(server.address, INVOCATIONS, &body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.body.contains(named), "{body}: {}", reply.body);
        reply.code();
    }
    for (target, field) in
        [(named("reviewer", " "), "targets[1].message"), (named("nobody", "y"), "targets[1]")]
    {
        let body = json!({"targets": [named("reviewer", "x"), target], "join": "all"});
        let reply = post(server.address, INVOCATIONS, &body).await.json();
        assert_eq!(reply["details"]["field"], field, "{reply}");
        assert!(!reply["details"]["reason"].as_str().unwrap().contains("targets"), "{reply}");
    }
    for query in ["wait_s=0", "wait_s=31", "wait_s=x"] {
        let body = json!({"targets": one()});
        let reply = post(server.address, &format!("{INVOCATIONS}?{query}"), &body).await;
        assert_eq!(reply.status, 400, "{query}");
    }
    assert_eq!(tasks(&server).await, 0);
    server.ended().await;
}

#[tokio::test]
async fn every_refused_body_names_its_field_and_the_reason() {
    let server = TestServer::new().await;
    let one = || vec![named("reviewer", "x")];
    let blank = json!({"agent": {"type": "ad_hoc", "system_prompt": " "}, "message": "x"});
    let thinks = json!({"type": "user", "content": [{"type": "thinking", "thinking": "x"}],
        "timestamp": "2026-01-20T10:00:00Z"});
    for (path, body, field) in [
        (INVOCATIONS, json!({"targets": []}), "targets"),
        (INVOCATIONS, json!({"targets": [named(" ", "x")]}), "targets"),
        (INVOCATIONS, json!({"targets": [blank]}), "targets"),
        (INVOCATIONS, json!({"targets": [named("reviewer", "x"), named("mute", "y")]}), "join"),
        (INVOCATIONS, json!({"targets": one(), "join": "any"}), "join"),
        (INVOCATIONS, json!({"targets": one(), "context": "inherited"}), "context"),
        (INVOCATIONS, json!({}), "targets"),
        ("/v1/tasks", json!({}), "message"),
        ("/v1/tasks", json!({"message": "x", "limits": 5}), "limits"),
        ("/v1/tasks", json!({"message": "x", "history": [thinks]}), "history[0].content[0]"),
        ("/v1/tasks", json!([]), "body"),
        ("/v1/tasks", json!("x"), "body"),
    ] {
        let reply = post(server.address, path, &body).await.json();
        assert_eq!(reply["details"]["field"], field, "{path} {body}: {reply}");
        assert!(!reply["details"]["reason"].as_str().unwrap().is_empty(), "{reply}");
    }
    assert_eq!(tasks(&server).await, 0);
    server.ended().await;
}

#[tokio::test]
async fn the_same_key_returns_the_same_tasks_also_when_interrupted_in_the_middle() {
    let server = TestServer::new().await;
    let body = json!({"targets": [named("reviewer", "one"), named("mute", "two")], "join": "all"});
    let first = post_as(server.address, "k", INVOCATIONS, &body).await;
    assert_eq!(first.status, 200, "{first:?}");
    let count = tasks(&server).await;
    let again = post_as(server.address, "k", INVOCATIONS, &body).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    // What was asked under a name is what counts, also where it could not be asked any more.
    let other = json!({"targets": [named("nobody", "three")], "join": "all"});
    assert_eq!(post_as(server.address, "k", INVOCATIONS, &other).await.json(), first.json());
    assert_eq!(tasks(&server).await, count);
    // Many at once: as if each had been cut off before it could keep what came of it.
    let detached = json!({"targets": [named("mute", "a"), named("mute", "b")], "join": "detached"});
    let mut asking = tokio::task::JoinSet::new();
    let address = server.address;
    for _ in 0..8 {
        let body = detached.clone();
        asking.spawn(async move { ids(&post_as(address, "k2", INVOCATIONS, &body).await) });
    }
    let answers = asking.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(tasks(&server).await, count + 2, "two tasks");
    server.ended().await;
}
