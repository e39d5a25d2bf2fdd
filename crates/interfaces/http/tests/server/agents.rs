//! Definitions of agents over HTTP: every client reads them, a person with level `admin` writes them.

use antiphon_core::AgentName;
use antiphon_keys::{KeyHolder, Level, NewKey};
use serde_json::{Value, json};

use crate::client::{get, post, request, say};
use crate::key_server::Keyed;
use crate::world::TestServer;

const AGENTS: &str = "/v1/agents";

#[tokio::test]
async fn a_list_of_agents_has_no_context_and_a_single_agent_has() {
    let server = TestServer::new().await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    server.orchestrator.start_agent(&reviewer, &antiphon_core::Provenance::Owner).await.unwrap();
    let listed = get(server.address, AGENTS).await.json();
    let listed = listed["agents"].as_array().unwrap();
    let brief = |agent: &Value| ["name", "origin", "live"].map(|field| agent[field].clone());
    assert_eq!(
        listed.iter().map(brief).collect::<Vec<_>>(),
        [
            [json!("mute"), json!("user"), json!(false)],
            [json!("reviewer"), json!("project"), json!(true)],
        ]
    );
    assert!(listed.iter().all(|agent| agent.get("context").is_none()), "{listed:?}");
    let shown = get(server.address, &format!("{AGENTS}/reviewer")).await.json();
    assert_eq!(
        shown,
        json!({
            "name": "reviewer", "description": "", "profile": "native", "model": "scripted/test",
            "available_tools": ["look", "act", "hang"],
            "tools": ["look", "hang"], "agents": {"only": []}, "intents": ["review"],
            "limits": {"turns_max": 50}, "origin": "project", "path": "agents/reviewer.md", "live": true,
            "context": "You are here.",
        })
    );
    let none = get(server.address, &format!("{AGENTS}/nobody")).await;
    assert_eq!((none.status, none.code().as_str()), (404, "NOT_FOUND"));
    server.ended().await;
}

#[tokio::test]
async fn an_agent_is_defined_changed_and_deleted_and_stopped_first_while_live() {
    let server = TestServer::new().await;
    let body = json!({"name": "scribe", "description": "Writes.", "context": "Write."});
    let made = post(server.address, AGENTS, &body).await;
    assert_eq!((made.status, &made.json()["context"]), (201, &json!("Write.")), "{made:?}");
    assert_eq!(post(server.address, AGENTS, &body).await.status, 409);
    let put = |path: &str, body: &Value| {
        request(server.address, "PUT", &format!("{AGENTS}/{path}"), Some(&body.to_string()))
    };
    let changed = say(server.address, &put("scribe", &json!({"context": "Write more."}))).await;
    assert_eq!((changed.status, &changed.json()["context"]), (200, &json!("Write more.")));
    let delete = |path: &str| request(server.address, "DELETE", &format!("{AGENTS}/{path}"), None);
    assert_eq!(say(server.address, &delete("scribe")).await.status, 204);
    assert_eq!(say(server.address, &delete("scribe")).await.status, 404);
    let mute = say(server.address, &delete("mute")).await;
    assert_eq!((mute.status, mute.code().as_str()), (403, "FORBIDDEN"), "the user's own");
    let reviewer = AgentName::parse("reviewer").unwrap();
    let live = server
        .orchestrator
        .start_agent(&reviewer, &antiphon_core::Provenance::Owner)
        .await
        .unwrap();
    assert_eq!(say(server.address, &delete("reviewer")).await.status, 204);
    assert!(server.orchestrator.task(&live.task_id).await.unwrap().status.is_terminal());
    server.ended().await;
}

#[tokio::test]
async fn reserved_names_and_invalid_definitions_are_refused() {
    let server = TestServer::new().await;
    for (body, status, named) in [
        (json!({"name": "status", "context": "x"}), 400, "is a route"),
        (json!({"name": "user", "context": "x"}), 400, "reserved"),
        (json!({"name": "../x", "context": "x"}), 400, "name"),
        (json!({"name": "x", "context": "x", "nonsense": 1}), 400, "nonsense"),
        (json!({"context": "x"}), 400, "name"),
        (json!([]), 400, "the body"),
    ] {
        let reply = post(server.address, AGENTS, &body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.body.contains(named), "{body}: {}", reply.body);
    }
    for method in ["PUT", "DELETE"] {
        let body = (method == "PUT").then_some("{}");
        let text = request(server.address, method, &format!("{AGENTS}/status"), body);
        let reply = say(server.address, &text).await;
        assert_eq!(reply.status, 405, "{reply:?}");
    }
    assert!(server.task_factory.written.lock().unwrap().is_empty());
    server.ended().await;
}

#[tokio::test]
async fn only_a_person_with_level_admin_writes_definitions() {
    let keyed = Keyed::new().await;
    let holder = KeyHolder::Agent(AgentName::parse("reviewer").unwrap());
    let agents = NewKey { holder, ..NewKey::new("helper".parse().unwrap(), Level::Write) };
    let (_, agents) = keyed.make(agents);
    let (writer, admin) = (keyed.person(Level::Write), keyed.person(Level::Admin));
    let body = json!({"name": "scribe", "context": "x"});
    let change = json!({"context": "y"});
    for (key, expected) in [
        (&agents, [403, 403, 403, 200]),
        (&writer, [403, 403, 403, 200]),
        (&admin, [201, 200, 204, 200]),
    ] {
        let path = format!("{AGENTS}/scribe");
        let got = [
            keyed.ask(key, "POST", AGENTS, Some(&body)).await.status,
            keyed.ask(key, "PUT", &path, Some(&change)).await.status,
            keyed.ask(key, "DELETE", &path, None).await.status,
            keyed.ask(key, "GET", AGENTS, None).await.status,
        ];
        assert_eq!(got, expected);
    }
    keyed.server.ended().await;
}
