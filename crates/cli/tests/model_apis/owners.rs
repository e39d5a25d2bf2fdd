//! Whose work a key sees, with keys made by the command line: what a key of scope `own` asked for, another one does not
//! find; over Responses, A2A and MCP each key finds its own, whatever its scope and level.

use serde_json::{Value, json};

use crate::client::{Target, requests};
use crate::project_server::{Answer, antiphon, until};

const ABSENT: &str = "01970000-0000-7000-8000-000000000000";

fn key(target: &Target, level: &str, scope: &str) -> String {
    let mut command = antiphon(target.folder.path());
    command.args(["keys", "new", "--name", "person", "--level", level, "--scope", scope]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let secret = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    // A running server takes a new key within a second.
    until("the key works", || (get(target, &secret, "/v1/tasks").status == 200).then_some(()));
    secret
}

fn ask(target: &Target, key: &str, method: &str, path: &str, body: &str) -> Answer {
    let authorization = format!("Bearer {key}");
    target.ask(method, path, &[("authorization", &authorization)], body)
}

fn get(target: &Target, key: &str, path: &str) -> Answer {
    ask(target, key, "GET", path, "")
}

/// Tools of the MCP server, called without a session.
fn mcp(target: &Target, key: &str, tool: &str, arguments: &Value) -> Answer {
    let authorization = format!("Bearer {key}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("accept", "application/json, text/event-stream"),
    ];
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    let begun = target.ask("POST", "/mcp", &headers, &initialize.to_string());
    assert_eq!(begun.status, 200, "{begun:?}");
    let session = begun.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap_or_default().to_owned();
    let more = [headers[0], headers[1], ("mcp-session-id", session.as_str())];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    target.ask("POST", "/mcp", &more, &ready.to_string());
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments } });
    target.ask("POST", "/mcp", &more, &call.to_string())
}

/// The message in an answer of the MCP server.
fn said(answer: &Answer) -> String {
    answer.body.lines().filter(|line| line.contains("jsonrpc")).collect()
}

#[test]
fn the_work_of_one_key_is_unknown_to_the_other_over_the_native_api() {
    let target = Target::new();
    let own = || key(&target, "write", "own");
    let (ada, eve, all) = (own(), own(), key(&target, "write", "all"));
    for (path, body) in requests("hello") {
        let answer = ask(&target, &ada, "POST", path, &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let task = answer.head.lines().find_map(|line| line.strip_prefix("x-antiphon-task: "));
        let task = task.unwrap().to_owned();
        let path = |id: &str| format!("/v1/tasks/{id}");
        let hidden = get(&target, &eve, &path(&task));
        let none = get(&target, &eve, &path(ABSENT));
        assert_eq!(hidden.status, 404, "{hidden:?}");
        assert_eq!(hidden.body.replace(&task, "ID"), none.body.replace(ABSENT, "ID"));
        for key in [&ada, &all, &target.token] {
            assert_eq!(get(&target, key, &path(&task)).status, 200);
        }
    }
    let counts = [(&ada, 3), (&eve, 0), (&all, 3), (&target.token, 3)];
    for (key, count) in counts {
        for (path, list) in [("/v1/tasks", "tasks"), ("/v1/sessions", "sessions")] {
            let listed = get(&target, key, path).json();
            assert_eq!(listed[list].as_array().unwrap().len(), count, "{path}: {listed}");
        }
    }
    let refused = get(&target, &eve, "/v1/usage");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("scope `own`"), "{refused:?}");
}

#[test]
fn over_responses_a2a_and_mcp_each_key_sees_its_own_work_alone() {
    let target = Target::with_agent();
    let [one, other] = [(); 2].map(|()| key(&target, "write", "all"));
    let (admin, eve) = (key(&target, "admin", "all"), key(&target, "write", "own"));
    let body = json!({ "model": "helper", "input": "hello" }).to_string();
    let asked = ask(&target, &one, "POST", "/v1/responses", &body);
    assert_eq!(asked.status, 200, "{asked:?}");
    let task = asked.head.lines().find_map(|line| line.strip_prefix("x-antiphon-task: "));
    let task = task.unwrap().to_owned();
    let native = format!("/v1/tasks/{task}");
    let response = format!("/v1/responses/{}", asked.json()["id"].as_str().unwrap());
    let get_task =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": task } });
    let seen = [
        (&one, true, true),
        (&other, true, false),
        (&admin, true, false),
        (&eve, false, false),
        (&target.token, true, true),
    ];
    let found = |is_seen| if is_seen { 200 } else { 404 };
    for (key, natively, elsewhere) in seen {
        assert_eq!(get(&target, key, &native).status, found(natively));
        let of_responses = get(&target, key, &response);
        assert_eq!(of_responses.status, found(elsewhere), "{of_responses:?}");
        let of_mcp = mcp(&target, key, "task_get", &json!({ "taskId": task }));
        assert_eq!(said(&of_mcp).contains("there is no such task"), !elsewhere, "{of_mcp:?}");
        let headers =
            [("authorization", format!("Bearer {key}")), ("a2a-version", "1.0".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let of_a2a = target.ask("POST", "/a2a/helper", &headers, &get_task.to_string()).json();
        let code = &of_a2a["error"]["code"];
        assert_eq!(*code, if elsewhere { Value::Null } else { json!(-32001) }, "{of_a2a}");
        let unknown = mcp(&target, key, "task_get", &json!({ "taskId": ABSENT }));
        if !elsewhere {
            assert_eq!((of_mcp.status, said(&of_mcp)), (unknown.status, said(&unknown)));
        }
    }
}

#[test]
fn a_key_of_scope_own_is_listed_so_and_is_never_admin() {
    let target = Target::new();
    key(&target, "write", "own");
    let listed = antiphon(target.folder.path()).args(["keys", "list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("SCOPE") && listed.contains("own"), "{listed}");
    let admin = ["keys", "new", "--name", "x", "--level", "admin", "--scope", "own"];
    let refused = antiphon(target.folder.path()).args(admin).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
