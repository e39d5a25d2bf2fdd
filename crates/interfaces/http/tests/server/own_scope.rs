//! Keys of scope `own`: work of others is as work that does not exist, on every route and in every list.

use antiphon_core::TaskId;
use antiphon_keys::{KeyScope, Level, NewKey};
use serde_json::{Value, json};

use crate::client::{Reply, request};
use crate::key_server::Keyed;
use crate::task_control::until;
use crate::world::{TOKEN, TestServer};

const ABSENT: &str = "01970000-0000-7000-8000-000000000000";

/// A server, the keys of two persons, and one that sees everything.
struct Persons {
    keyed: Keyed,
    ada: String,
    eve: String,
    all: String,
}

impl Persons {
    async fn new() -> Self {
        let keyed = Keyed::new().await;
        let own = |name: &str| NewKey {
            scope: KeyScope::Own,
            ..NewKey::new(name.parse().unwrap(), Level::Write)
        };
        let (ada, eve) = (keyed.make(own("ada")).1, keyed.make(own("eve")).1);
        let all = keyed.person(Level::Write);
        Self { keyed, ada, eve, all }
    }

    async fn ask(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.keyed.ask(key, method, path, body).await
    }

    async fn get(&self, key: &str, path: &str) -> Reply {
        self.ask(key, "GET", path, None).await
    }

    /// Creates a task, and waits for an event of it.
    async fn task(&self, key: &str, message: &str, event: &str) -> Value {
        let body = json!({ "message": message });
        let reply = self.ask(key, "POST", "/v1/tasks", Some(&body)).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let id = reply.json()["task_id"].as_str().unwrap().to_owned();
        until(&self.keyed.server, &TaskId::parse(&id).unwrap(), event).await;
        self.get(key, &format!("/v1/tasks/{id}")).await.json()
    }

    /// Asserts that an id of other work is answered as one that does not exist, and no worse with the own key.
    async fn hidden(&self, method: &str, path: &str, id: &str, body: Option<&Value>) {
        let told = |reply: &Reply, id: &str| (reply.status, reply.body.replace(id, "ID"));
        let hidden = self.ask(&self.eve, method, &path.replace("ID", id), body).await;
        let none = self.ask(&self.eve, method, &path.replace("ID", ABSENT), body).await;
        assert_eq!(told(&hidden, id), told(&none, ABSENT), "{method} {path}");
        let refusals = [400, 403, 404];
        assert!(refusals.contains(&hidden.status), "{method} {path}: {hidden:?}");
    }
}

fn ids(reply: &Reply, list: &str, id: &str) -> Vec<String> {
    let json = reply.json();
    let Some(items) = json[list].as_array() else { panic!("{reply:?}") };
    items.iter().map(|item| item[id].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_id_of_anothers_work_is_answered_as_one_that_does_not_exist() {
    let persons = Persons::new().await;
    let task = persons.task(&persons.ada, "act", "approval_requested").await;
    let (task, session) = (task["task_id"].as_str().unwrap(), task["session_id"].as_str().unwrap());
    let message = json!({ "text": "more" });
    let result = json!({ "tool_call_id": "c1", "content": "x" });
    let orders = [
        ("GET", "/v1/tasks/ID", None),
        ("GET", "/v1/tasks/ID/tree", None),
        ("GET", "/v1/tasks/ID/rest", None),
        ("GET", "/v1/tasks/ID/events", None),
        ("GET", "/v1/tasks/ID/diff", None),
        ("GET", "/v1/events?root=ID", None),
        ("GET", "/v1/journal?task_id=ID", None),
        ("GET", "/v1/tasks?cursor=ID", None),
        ("GET", "/v1/sessions?cursor=ID", None),
        ("GET", "/v1/approvals?cursor=ID", None),
        ("POST", "/v1/tasks/ID/messages", Some(&message)),
        ("POST", "/v1/tasks/ID/tool_results", Some(&result)),
        ("POST", "/v1/tasks/ID/pause", None),
        ("POST", "/v1/tasks/ID/resume", None),
        ("POST", "/v1/tasks/ID/interrupt", None),
        ("POST", "/v1/tasks/ID/cancel", None),
    ];
    for (method, path, body) in orders {
        persons.hidden(method, path, task, body).await;
    }
    // An escaped letter of the path is the same id.
    let escaped = format!("%{:02x}{}", task.as_bytes()[0], &task[1..]);
    let reply = persons.get(&persons.eve, &format!("/v1/tasks/{escaped}")).await;
    assert_eq!(reply.status, 404, "{reply:?}");
    for path in ["/v1/sessions/ID", "/v1/sessions/ID/export"] {
        persons.hidden("GET", path, session, None).await;
    }
    persons.hidden("POST", "/v1/sessions/ID/fork", session, None).await;
    let approvals = persons.get(&persons.ada, "/v1/approvals").await;
    let approval = ids(&approvals, "approvals", "approval_id").remove(0);
    persons.hidden("GET", "/v1/approvals/ID", &approval, None).await;
    let continuing = |id: &str| json!({ "message": "more", "session_id": id });
    let told = |reply: &Reply, id: &str| (reply.status, reply.body.replace(id, "ID"));
    let hidden = persons.ask(&persons.eve, "POST", "/v1/tasks", Some(&continuing(session))).await;
    let none = persons.ask(&persons.eve, "POST", "/v1/tasks", Some(&continuing(ABSENT))).await;
    assert_eq!((hidden.status, told(&hidden, session)), (404, told(&none, ABSENT)));

    let own = persons.get(&persons.ada, &format!("/v1/tasks/{task}")).await.json();
    assert_eq!(own["waiting_for"], "approval", "nothing has happened to it: {own}");
    for path in ["/v1/tasks/ID/tree", "/v1/tasks/ID/diff", "/v1/journal?task_id=ID"] {
        let reply = persons.get(&persons.ada, &path.replace("ID", task)).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
    for path in [format!("/v1/sessions/{session}"), format!("/v1/approvals/{approval}")] {
        for key in [&persons.ada, &persons.all] {
            assert_eq!(persons.get(key, &path).await.status, 200, "{path}");
        }
    }
    let fork = format!("/v1/sessions/{session}/fork");
    let fork = persons.ask(&persons.ada, "POST", &fork, None).await;
    assert_eq!(fork.status, 201, "{fork:?}");
    let fork = fork.json()["session_id"].as_str().unwrap().to_owned();
    let shown = persons.get(&persons.ada, &format!("/v1/sessions/{fork}")).await;
    assert_eq!(shown.status, 200, "a fork belongs to the key that made it: {shown:?}");
    persons.hidden("GET", "/v1/sessions/ID", &fork, None).await;
    persons.keyed.server.ended().await;
}

#[tokio::test]
async fn lists_have_the_work_of_the_key_alone() {
    let persons = Persons::new().await;
    let mut own = Vec::new();
    for key in [&persons.ada, &persons.eve, &persons.all, &persons.ada] {
        let task = persons.task(key, "act", "approval_requested").await;
        if *key == persons.ada {
            own.insert(0, task);
        }
    }
    let known = |name: &str| -> Vec<String> {
        own.iter().map(|task| task[name].as_str().unwrap().to_owned()).collect()
    };
    let lists = [
        ("/v1/tasks", "tasks", "task_id"),
        ("/v1/tasks?unfinished=true", "tasks", "task_id"),
        ("/v1/sessions", "sessions", "session_id"),
    ];
    for (path, list, id) in lists {
        let listed = persons.get(&persons.ada, path).await;
        assert_eq!(ids(&listed, list, id), known(id), "{path}");
        let limit = if path.contains('?') { "&limit=1" } else { "?limit=1" };
        let first = persons.get(&persons.ada, &format!("{path}{limit}")).await;
        let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
        let rest = persons.get(&persons.ada, &format!("{path}{limit}&cursor={cursor}")).await;
        assert_eq!(ids(&rest, list, id), known(id)[1..], "{path}");
        assert_eq!(rest.json()["next_cursor"], Value::Null, "{path}");
        assert_eq!(ids(&persons.get(&persons.eve, path).await, list, id).len(), 1, "{path}");
        assert_eq!(ids(&persons.get(&persons.all, path).await, list, id).len(), 4, "{path}");
    }
    for all in ["", "?all=true"] {
        let path = format!("/v1/approvals{all}");
        let listed = persons.get(&persons.ada, &path).await;
        let mut expected = known("task_id");
        expected.reverse();
        assert_eq!(ids(&listed, "approvals", "task_id"), expected, "{path}");
        let everyones = persons.get(&persons.all, &path).await;
        assert_eq!(ids(&everyones, "approvals", "task_id").len(), 4, "{path}");
    }
    // All ids of one time begin alike.
    let prefix = &known("task_id")[0][..4];
    let listed = persons.get(&persons.ada, &format!("/v1/tasks?id_prefix={prefix}")).await;
    assert_eq!(ids(&listed, "tasks", "task_id"), known("task_id"));
    persons.keyed.server.ended().await;
}

#[tokio::test]
async fn the_stream_of_the_journal_has_the_events_of_the_key_alone() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let persons = Persons::new().await;
    let address = persons.keyed.server.address;
    let text = request(address, "GET", "/v1/events?after=0&deltas=true", None);
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(text.replacen(TOKEN, &persons.ada, 1).as_bytes()).await.unwrap();
    let others = persons.task(&persons.eve, "look", "tool_started").await;
    let own = persons.task(&persons.ada, "act", "approval_requested").await;
    let mut heard = String::new();
    while !heard.contains("approval_requested") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(heard.contains(own["task_id"].as_str().unwrap()), "{heard}");
    assert!(!heard.contains(others["task_id"].as_str().unwrap()), "{heard}");
    persons.keyed.server.ended().await;
}

#[tokio::test]
async fn what_is_about_the_whole_project_is_refused() {
    let persons = Persons::new().await;
    let routes = [
        ("GET", "/v1/usage"),
        ("GET", "/v1/budget"),
        ("GET", "/metrics"),
        ("GET", "/v1/inbox"),
        ("GET", "/v1/agents/status"),
        ("GET", "/v1/requests/00000000-0000-4000-8000-000000000000"),
        ("GET", "/v1/journal"),
        ("POST", "/v1/agents/reviewer/inbox"),
        ("POST", "/v1/agents/reviewer/start"),
        ("POST", "/v1/agents/reviewer/stop"),
        ("POST", "/v1/sessions"),
        ("POST", "/v1/runs"),
    ];
    for (method, path) in routes {
        let at = "2026-01-02T03:04:05Z";
        let body = json!({ "message": "hi", "version": 1, "id": "x", "created_at": at,
            "updated_at": at, "messages": [] });
        let body = Some(&body).filter(|_| method == "POST");
        let reply = persons.ask(&persons.ada, method, path, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{path}: {reply:?}");
    }
    for path in ["/v1/agents", "/v1/models", "/health"] {
        assert_eq!(persons.get(&persons.ada, path).await.status, 200, "{path}");
    }
    assert_eq!(persons.get(&persons.ada, "/v1/nothing").await.status, 404);
    persons.keyed.server.ended().await;
}

/// A new route is refused until its interface says what a key of scope `own` sees of it.
#[tokio::test]
async fn every_route_is_either_checked_or_refused() {
    let server = TestServer::new().await;
    let document = crate::client::get(server.address, "/openapi.json").await.json();
    server.ended().await;
    let persons = Persons::new().await;
    let (mut refused, mut named) = (Vec::new(), 0);
    for (path, _) in document["paths"].as_object().unwrap() {
        if !path.contains('{') || path.contains("/a2a/") {
            continue;
        }
        named += 1;
        let asked =
            path.replace("{id}", ABSENT).replace("{name}", "absent").replace("{source}", "x");
        let reply = persons.get(&persons.ada, &asked).await;
        match reply.status {
            403 => refused.push(path.clone()),
            404 | 405 => {}
            _ => panic!("{path}: {reply:?}"),
        }
    }
    assert!(named > 20, "{named}");
    refused.sort();
    let expected = [
        "/v1/agents/{name}/inbox",
        "/v1/agents/{name}/start",
        "/v1/agents/{name}/stop",
        "/v1/events/{source}",
        "/v1/requests/{id}",
    ];
    assert_eq!(refused, expected);
    persons.keyed.server.ended().await;
}
