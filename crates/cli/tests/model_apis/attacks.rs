//! Hostile requests are refused in the shape of their API, with an id of the request, and the server goes on.

use serde_json::{Value, json};

use crate::client::{Target, requests};
use crate::project_server::{Answer, until};

/// Bytes of a body that the server takes.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Asserts that an answer is an error in the shape of its route, and names its request.
fn refused(path: &str, answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{path}: {answer:?}");
    let json: Value = answer.json();
    assert!(json["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{json}");
    assert!(json["error"]["type"].is_string(), "{json}");
    let header = if path == "/v1/messages" {
        assert_eq!(json["type"], "error", "{json}");
        "\r\nrequest-id: req_"
    } else {
        assert!(
            json["error"].get("code").is_some() && json["error"].get("param").is_some(),
            "{json}"
        );
        "\r\nx-request-id: req_"
    };
    assert!(answer.head.contains(header), "{path}: {}", answer.head);
}

fn works(target: &Target) {
    for (path, body) in requests("hello") {
        let answer = target.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(answer.head.contains("request-id: req_"), "{path}: {}", answer.head);
    }
}

#[test]
fn a_request_without_a_token_or_from_a_foreign_page_is_refused_in_the_shape_of_its_api() {
    let target = Target::new();
    let wrong = format!("Bearer {}", "x".repeat(40));
    for (path, body) in requests("hello") {
        let body = body.to_string();
        let ask = |headers: &[(&str, &str)]| target.ask("POST", path, headers, &body);
        refused(path, &ask(&[("authorization", "")]), 401);
        refused(path, &ask(&[("authorization", &wrong)]), 401);
        refused(path, &ask(&[("authorization", ""), ("x-api-key", "nothing")]), 401);
        refused(path, &ask(&[("host", "evil.example")]), 403);
        refused(path, &ask(&[("origin", "http://evil.example")]), 403);
        refused(path, &ask(&[("origin", "null")]), 403);
        refused(path, &ask(&[("content-type", "text/plain")]), 415);
        refused(path, &target.ask("DELETE", path, &[], ""), 405);
    }
    for path in ["/v1/chat/nothing", "/v1/responses/nothing/nothing", "/v1/models/no/such"] {
        refused(path, &target.ask("GET", path, &[], ""), 404);
    }
    let answer = target.ask("GET", "/v1/models/none", &[("anthropic-version", "2023-06-01")], "");
    refused("/v1/messages", &answer, 404);
    works(&target);
}

#[test]
fn oversized_and_hostile_bodies_are_refused() {
    let target = Target::new();
    for (path, body) in requests("hello") {
        let announced = format!("content-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
        refused(path, &target.send(&(target.head("POST", path, &[]) + &announced)), 413);
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        let attacked = |value: &str| {
            let mut body = body.clone();
            body.as_object_mut().unwrap().remove(field);
            let rest = body.to_string();
            format!("{},\"{field}\":{value}}}", &rest[..rest.len() - 1])
        };
        // The header of OpenAI's libraries asks for their shape, also for a body that is none of theirs.
        let library = [("x-stainless-lang", "python")];
        for hostile in [deep.as_str(), "{", "[[]]", "17", "\"\\ud800\"", "{\"role\":\"user\"}"] {
            let answer = target.ask("POST", path, &library, &attacked(hostile));
            refused(path, &answer, 400);
        }
        for hostile in ["", "[]", "\u{0}", "null", "\"text\""] {
            refused(path, &target.ask("POST", path, &library, hostile), 400);
        }
        // What an error repeats of a request is bounded.
        let long = "x".repeat(5 << 20);
        for field in ["model", "stream", "temperature", "tool_choice"] {
            let mut body = body.clone();
            body[field] = json!(long);
            let answer = target.ask("POST", path, &library, &body.to_string());
            assert!((400..500).contains(&answer.status), "{path} {field}: {}", answer.status);
            assert!(answer.body.len() < 32 * 1024, "{path} {field}: {}", answer.body.len());
        }
        // Of a field that is there twice, the last one counts, as for OpenAI.
        let twice = body.to_string().replacen('{', "{\"model\":\"nobody\",", 1);
        let answer = target.ask("POST", path, &[], &twice);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    works(&target);
}

#[test]
fn ten_thousand_messages_are_taken_and_one_more_is_refused() {
    let target = Target::new();
    for (path, mut body) in requests("hello") {
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        let message = json!({ "role": "user", "content": "hello" });
        body[field] = vec![message.clone(); 10_000].into();
        let answer = target.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        body[field].as_array_mut().unwrap().push(message);
        refused(path, &target.post(path, &body), 400);
    }
    works(&target);
}

#[test]
fn tools_whose_names_clash_are_refused_or_taken_by_rule() {
    let target = Target::new();
    let tools = |path: &str, names: &[&str]| -> Value {
        let schema = json!({ "type": "object", "properties": {} });
        let tool = |name: &&str| match path {
            "/v1/messages" => json!({ "name": name, "input_schema": schema }),
            "/v1/responses" => json!({ "type": "function", "name": name, "parameters": schema }),
            _ => json!({ "type": "function", "function": { "name": name, "parameters": schema } }),
        };
        names.iter().map(tool).collect()
    };
    for (path, mut body) in requests("hello") {
        for names in [
            &["twice", "twice"][..],
            &["final"],
            &[""],
            &["no spaces"],
            &["x".repeat(300).as_str()],
        ] {
            body["tools"] = tools(path, names);
            refused(path, &target.post(path, &body), 400);
        }
        // Names of tools that the agents of this project have: the client's are offered to a plain model.
        body["tools"] = tools(path, &["bash", "read", "call_agent"]);
        let answer = target.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    works(&target);
}

#[test]
fn a_client_that_leaves_at_any_moment_of_a_stream_leaves_nothing_at_work() {
    let target = Target::new();
    for (path, mut body) in requests("slowly") {
        body["stream"] = json!(true);
        let text = body.to_string();
        let request = format!(
            "{}content-length: {}\r\n\r\n{text}",
            target.head("POST", path, &[]),
            text.len()
        );
        // At once, within the head, and then further and further into the events, up to their end.
        let mut bytes = 0;
        loop {
            let received = target.leave_after(&request, bytes);
            if received < bytes {
                break;
            }
            bytes = bytes * 3 / 2 + 64;
        }
        assert!(bytes > 2000, "{path}: {bytes}");
    }
    // A client that sends half of a request, too.
    for (path, _) in requests("hello") {
        let head = target.head("POST", path, &[]);
        target.leave_after(&format!("{head}content-length: 100\r\n\r\n{{\"model\":"), 0);
    }
    until("no task is left", || {
        let left = target.server.ask("GET", "/v1/tasks?unfinished=true", "").json();
        left["tasks"].as_array().unwrap().is_empty().then_some(())
    });
    works(&target);
}

#[test]
fn a_key_that_is_repeated_with_another_body_gets_the_first_answer_and_no_second_task() {
    let target = Target::new();
    let tasks = || {
        let listed = target.server.ask("GET", "/v1/tasks?limit=1000", "").json();
        listed["tasks"].as_array().unwrap().len()
    };
    for (path, body) in requests("first") {
        let before = tasks();
        let key = [("idempotency-key", "one")];
        let first = target.ask("POST", path, &key, &body.to_string());
        let (_, other) = requests("second").into_iter().find(|(other, _)| *other == path).unwrap();
        let again = target.ask("POST", path, &key, &other.to_string());
        assert_eq!((first.status, again.status), (200, 200), "{path}: {again:?}");
        assert_eq!(first.json(), again.json(), "{path}");
        assert_eq!(tasks(), before + 1, "{path}");
    }
}
