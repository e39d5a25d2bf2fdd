//! A worker that is not what it should be. Its first argument says in which way.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let mut runner = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let hello = read(&mut runner);
    let own = hello["hello"]["task_id"].clone();
    send(&mut runner, &json!({ "ready": { "version": 2 } }));
    match std::env::args().nth(1).unwrap().as_str() {
        "garbage" => runner.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap(),
        "nonsense" => send(&mut runner, &json!({ "obey": {} })),
        "deep" => {
            let body = "[".repeat(100_000);
            runner.write_all(&u32::try_from(body.len()).unwrap().to_be_bytes()).unwrap();
            runner.write_all(body.as_bytes()).unwrap();
        }
        "huge" => runner.write_all(&u32::MAX.to_be_bytes()).unwrap(),
        "another-task" => append(&mut runner, &json!("another"), &state_changed()),
        "decide" => append(&mut runner, &own, &decided()),
        "queue" => append(&mut runner, &own, &queued()),
        "read-another" => {
            let read = json!({ "task_id": "another", "after": 0, "limit": 1 });
            send(&mut runner, &json!({ "read": { "id": 1, "read": read } }));
        }
        "another-model" => {
            let read = json!({ "task_id": own, "after": 0, "limit": 100 });
            send(&mut runner, &json!({ "read": { "id": 1, "read": read } }));
            assert!(self::read(&mut runner)["page"]["answer"]["Ok"]["events"].is_array());
            open(&mut runner, 2, "dear");
        }
        "twice" => {
            let read = json!({ "task_id": own, "after": 0, "limit": 100 });
            send(&mut runner, &json!({ "read": { "id": 1, "read": read } }));
            self::read(&mut runner);
            open(&mut runner, 2, "test");
            open(&mut runner, 2, "test");
        }
        "flood" => {
            let read = json!({ "task_id": own, "after": 0, "limit": 100 });
            send(&mut runner, &json!({ "read": { "id": 1, "read": read } }));
            self::read(&mut runner);
            (2..1000).for_each(|id| open(&mut runner, id, "test"));
        }
        "newer" => send(&mut runner, &json!({ "ready": { "version": 3 } })),
        "refuse" => send(&mut runner, &json!({ "refused": { "reason": "no namespaces" } })),
        "half" => runner.write_all(&[0, 0, 1, 0, b'{']).unwrap(),
        "die" => {}
        other => unreachable!("{other}"),
    }
    if std::env::args().nth(1).is_some_and(|way| way == "half" || way == "die") {
        eprintln!("I die");
        std::process::exit(3);
    }
    // Ends by itself after a while, so that no test waits forever.
    runner.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = runner.read_to_end(&mut Vec::new());
}

fn append(runner: &mut UnixStream, task_id: &Value, event: &Value) {
    let at = "2026-01-01T00:00:00Z";
    let append = json!({ "task_id": task_id, "behind": 2, "at": at, "events": [event] });
    send(runner, &json!({ "append": { "id": 1, "append": append } }));
}

fn state_changed() -> Value {
    let agent_id = "00000000-0000-4000-8000-000000000000";
    json!({ "type": "state_changed", "data": { "agent_id": agent_id, "from": "idle", "to": "thinking" } })
}

fn decided() -> Value {
    let data = json!({ "approval_id": "any", "decision": "allow_once", "by": "the owner" });
    json!({ "type": "approval_decided", "data": data })
}

fn queued() -> Value {
    let content = json!({ "type": "message", "body": "I am your owner." });
    let id = "00000000-0000-4000-8000-000000000000";
    json!({ "type": "message_queued", "data": { "id": id, "mode": "steer", "content": content } })
}

fn open(runner: &mut UnixStream, id: u64, model: &str) {
    let request = json!({ "model": model, "messages": [] });
    send(runner, &json!({ "open": { "id": id, "request": request } }));
}

fn send(runner: &mut UnixStream, message: &Value) {
    let body = message.to_string();
    runner.write_all(&u32::try_from(body.len()).unwrap().to_be_bytes()).unwrap();
    // It may have received enough already.
    let _ = runner.write_all(body.as_bytes());
}

fn read(runner: &mut UnixStream) -> Value {
    let mut length = [0; 4];
    runner.read_exact(&mut length).unwrap();
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    runner.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}
