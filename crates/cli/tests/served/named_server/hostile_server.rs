//! No harm from a server that is broken or hostile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::served::project::Project;

/// A server that answers every connection with the same bytes. It ends with the test's process.
fn hostile(answer: Vec<u8>) -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { continue };
            *counter.lock().unwrap() += 1;
            let mut head = [0; 4096];
            let _ = socket.read(&mut head);
            let _ = socket.write_all(&answer);
        }
    });
    (address, count)
}

#[test]
fn commands_end_with_a_reason_whatever_a_server_answers() {
    let project = Project::that_asks("go");
    let token = "0123456789abcdef".repeat(4);
    let (other, visits) = hostile(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec());
    let json = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let answers: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("garbage", b"\x00\xff\x1b[2J nonsense\r\n\r\n".to_vec()),
        ("half", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"tasks\": [".to_vec()),
        (
            "html",
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
                .to_vec(),
        ),
        (
            "500",
            b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".to_vec(),
        ),
        (
            "redirect",
            format!("HTTP/1.1 302 X\r\nlocation: http://{other}/\r\ncontent-length: 0\r\n\r\n")
                .into(),
        ),
        ("null", json("null")),
        ("empty", json("{}")),
        ("list", json("[1]")),
        ("escape", json("{\"code\":\"\\u001b[2J\",\"message\":\"\\u001b[2J\"}")),
    ];
    for (name, answer) in answers {
        let (address, _) = hostile(answer);
        for order in [
            &["tasks", "list"][..],
            &["tasks", "show", "last"],
            &["tasks", "watch"],
            &["tasks", "cancel", "last"],
            &["tasks", "tree"],
            &["inbox", "list"],
            &["inbox", "show", "a"],
            &["agents", "list"],
            &["agents", "show", "a"],
            &["agents", "new", "a"],
            &["agents", "status"],
            &["sessions", "list"],
            &["approvals", "list"],
            &["budget", "show"],
            &["usage"],
            &["send", "a", "hello"],
        ] {
            let started = Instant::now();
            let seen = project.antiphon_at(&format!("http://{address}"), &token, order);
            assert_eq!(seen.code, 4, "{name}, {order:?}: {seen:?}");
            assert!(
                seen.err.starts_with("antiphon: ") && !seen.err.contains("panicked"),
                "{seen:?}"
            );
            assert!(!seen.err.contains(&token) && !seen.err.contains('\u{1b}'), "{seen:?}");
            assert!(seen.out.is_empty(), "{name}, {order:?}: {seen:?}");
            assert!(started.elapsed() < Duration::from_secs(20), "{name}, {order:?}");
        }
    }
    assert_eq!(*visits.lock().unwrap(), 0, "no redirect was followed");
}
