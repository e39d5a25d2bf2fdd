//! `/mcp` of `antiphon serve`, for clients of both generations.

use serde_json::{Value, json};

use crate::world::{World, text};

#[test]
fn both_generations_call_an_agent() {
    let world = World::new();
    let server = world.server(&[]);
    let token = server.token.clone();
    let session = server.session(&token);
    let call = json!({ "name": "helper", "arguments": { "message": "hello" } });
    let old = server.in_session(&token, &session, "tools/call", &call).message();
    assert_eq!(text(&old["result"]), "You said hello", "{old}");
    let new = server.call(&token, "helper", &json!({ "message": "hello" }));
    assert_eq!((text(&new), &new["resultType"]), ("You said hello", &json!("complete")), "{new}");
    let ended = server.raw("DELETE", Some(&token), &format!("mcp-session-id: {session}\r\n"), "");
    assert!([200, 202, 204].contains(&ended.status), "{ended:?}");
    let gone = server.in_session(&token, &session, "tools/list", &json!({}));
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[test]
fn the_same_key_gives_the_same_task() {
    let world = World::new();
    let server = world.server(&[]);
    let token = server.token.clone();
    let session = server.session(&token);
    let call = |key: &str| {
        let call = json!({
            "name": "helper", "arguments": { "message": "hello" },
            "_meta": { "antiphon/idempotencyKey": key },
        });
        let answer = server.in_session(&token, &session, "tools/call", &call).message();
        answer["result"]["structuredContent"]["taskId"].clone()
    };
    let first = call("once");
    assert!(first.is_string());
    assert_eq!(call("once"), first);
    assert_ne!(call("again"), first);
}

#[test]
fn only_listed_agents_are_tools() {
    let world = World::with("[mcp_server]\nagents = [\"helper\"]");
    let server = world.server(&[]);
    let names = |value: &Value| -> Vec<String> {
        let tools = value["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = names(&server.ask(&server.token, "tools/list", &json!({}), &json!({})));
    assert!(listed.contains(&"helper".to_owned()), "{listed:?}");
    assert!(!listed.iter().any(|name| name.starts_with("task_get_")), "{listed:?}");
}

#[test]
fn a_server_that_shows_no_agent_has_only_its_own_tools() {
    let world = World::with("[mcp_server]\nagents = []");
    let server = world.server(&[]);
    let tools = server.ask(&server.token, "tools/list", &json!({}), &json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 5, "{tools}");
}
