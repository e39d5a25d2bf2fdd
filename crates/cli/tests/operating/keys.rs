//! `antiphon keys`, from the first key to the last request with it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::project_folder::state;
use crate::server::{Project, Server};

/// Longer than a server takes to notice a change.
const NOTICED: Duration = Duration::from_secs(20);

/// Asks until this is answered.
fn until(server: &Server, key: &str, status: u16) {
    let begun = Instant::now();
    while server.status(key, "GET /v1/tasks") != status {
        assert!(begun.elapsed() < NOTICED, "{status} was not answered in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_key_is_made_used_changed_and_taken_back_beside_a_running_server() {
    let project = Project::new();
    let server = Server::start(&project);
    let made = project.run(&["keys", "new", "--name", "nightly", "--level", "write"]);
    assert!(made.status.success(), "{made:?}");
    let first = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let reported = String::from_utf8(made.stderr).unwrap();
    assert!(first.starts_with("ak_") && !reported.contains(&first[12..]), "{reported}");
    until(&server, &first, 200);
    server.work(&first, "");
    let id = first[3..11].to_owned();
    let second = project.out(&["keys", "rotate", &id]).trim().to_owned();
    assert_ne!(second, first);
    until(&server, &first, 401);
    until(&server, &second, 200);
    let listed = project.json(&["keys", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let shown = ["id", "name", "level", "status"].map(|field| listed[0][field].clone());
    assert_eq!(shown, [json!(id), json!("nightly"), json!("write"), json!("active")]);
    project.out(&["keys", "revoke", &id]);
    until(&server, &second, 401);
    assert!(project.out(&["keys", "list"]).contains("revoked"));
    let kept = fs::read_to_string(state(project.path()).join("keys.json")).unwrap();
    for secret in [&first, &second] {
        assert!(!kept.contains(&secret[12..]), "a secret was kept");
        assert!(!project.log().contains(&secret[12..]), "a secret was logged");
    }
    server.end();
}

#[test]
fn what_a_key_is_made_with_holds() {
    let project = Project::new();
    let words = ["keys", "new", "--name", "helper", "--level", "write", "--agent", "reviewer"];
    let more = ["--expires", "30d", "--rate", "2/min", "--json"];
    let made = project.json(&[&words[..], &more[..]].concat());
    assert_eq!(made["holder"], json!({"agent": "reviewer"}));
    assert_eq!(made["rate_per_minute"], json!(2));
    let time = |field: &str| {
        made[field].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
    };
    // The end is counted from the command, the age from when the file was written.
    let lasts_s = (time("expires_at") - time("created_at")).num_seconds();
    assert!((30 * 86_400 - 60..=30 * 86_400).contains(&lasts_s), "{made}");
    let key = made["secret"].as_str().unwrap();
    // Made before the first start, it is known at the first start.
    let server = Server::start(&project);
    let decide = server.status(key, "POST /v1/approvals/0199");
    assert_eq!(decide, 403);
    assert_eq!(server.status(key, "GET /metrics"), 200);
    assert_eq!(server.status(key, "GET /metrics"), 429);
    assert_eq!(server.status(&project.token(), "GET /metrics"), 200);
    server.end();
}

#[test]
fn what_cannot_be_a_key_is_refused_and_nothing_is_made() {
    let project = Project::new();
    for (words, code, says) in [
        (&["new", "--name", "x", "--level", "root"][..], 2, "`read`, `write` or `admin`"),
        (&["new", "--name", "x", "--rate", "0/min"], 2, "from 1 to"),
        (&["new", "--name", "x", "--rate", "often"], 2, "60/min"),
        (&["new", "--name", "x", "--expires", "0s"], 2, "choose a later time"),
        (&["new", "--name", "x", "--agent", "ada", "--level", "admin"], 2, "never `admin`"),
        (&["new"], 2, "--name"),
        (&["revoke", "abcdefgh"], 2, "keys list"),
        (&["rotate", "ak_abcdefgh_thesecret"], 2, "in the middle"),
        (&["rotate", "abcdefgh", "--grace", "31d"], 2, "30 days"),
    ] {
        let output = project.run(&[&["keys"], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(!said.contains("thesecret"), "{said}");
    }
    assert!(!state(project.path()).join("keys.json").exists());
    assert!(project.out(&["keys", "list"]).contains("antiphon keys new"));
}

#[test]
fn keys_and_a_token_that_came_with_a_folder_open_nothing() {
    let source = Project::new();
    let theirs = source.out(&["keys", "new", "--name", "theirs", "--level", "admin"]);
    for clone in Project::each() {
        opens_nothing(&source, theirs.trim(), &clone);
    }
}

/// `theirs` is a key of `source`.
fn opens_nothing(source: &Project, theirs: &str, clone: &Project) {
    let known = "0123456789abcdef0123456789abcdef";
    let folder = clone.path().join(".antiphon");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(state(source.path()).join("keys.json"), folder.join("keys.json")).unwrap();
    fs::write(folder.join("token"), known).unwrap();
    for name in ["keys.json", "token"] {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    clone.out(&["keys", "new", "--name", "mine"]);
    assert_eq!(clone.json(&["keys", "list", "--json"]).as_array().unwrap().len(), 1);
    let server = Server::start(clone);
    assert_eq!(server.status(known, "GET /v1/tasks"), 401);
    assert_eq!(server.status(theirs, "GET /v1/tasks"), 401);
    assert_eq!(server.status(&clone.token(), "GET /v1/tasks"), 200);
    server.end();
    assert_eq!(
        fs::read_to_string(folder.join("token")).unwrap(),
        known,
        "the project is not touched"
    );
}

#[test]
fn a_server_does_not_start_with_keys_that_others_can_read() {
    let project = Project::new();
    project.out(&["keys", "new", "--name", "mine"]);
    let path = state(project.path()).join("keys.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let output = project.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod 600"), "{output:?}");
}

#[test]
fn revoking_a_key_ends_its_open_streams_and_not_those_of_the_owner() {
    let project = Project::new();
    let made = project.out(&["keys", "new", "--name", "dashboard"]);
    let key = made.trim();
    let server = Server::start(&project);
    let open = |key: &str, path: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: ADDRESS\r\nauthorization: Bearer {key}\r\n\r\n");
        let mut socket = server.send(&head);
        socket.set_read_timeout(Some(NOTICED)).unwrap();
        let mut first = [0; 12];
        socket.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        socket
    };
    let mut streams = [open(key, "/v1/events?after=0"), open(key, "/v1/events?deltas=true")];
    let mut owner = open(&project.token(), "/v1/events?after=0");
    project.out(&["keys", "revoke", &key[3..11]]);
    let revoked = Instant::now();
    for stream in &mut streams {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    // A second, and as much again for a busy machine.
    assert!(revoked.elapsed() < Duration::from_secs(2), "{:?}", revoked.elapsed());
    owner.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let mut bytes = [0; 4096];
    let ended =
        std::iter::repeat_with(|| owner.read(&mut bytes)).find(|read| !matches!(read, Ok(1..)));
    assert!(matches!(ended, Some(Err(_))), "the owner's stream is open, and waits: {ended:?}");
    server.end();
}

#[test]
fn wrong_keys_are_slowed_down_and_the_token_is_accepted_meanwhile() {
    let project = Project::new();
    let server = Server::start(&project);
    let statuses: Vec<u16> =
        (0..70).map(|n| server.status(&format!("guess-{n}"), "GET /v1/tasks")).collect();
    assert_eq!(statuses[..60], [401; 60]);
    assert!(statuses[60..].contains(&429), "{statuses:?}");
    assert_eq!(server.status(&project.token(), "GET /v1/tasks"), 200);
    server.end();
}

#[test]
fn a_target_in_absolute_form_and_a_head_that_is_too_large_are_refused() {
    let project = Project::new();
    let server = Server::start(&project);
    let token = project.token();
    let many: Vec<String> = (0..70).map(|n| format!("x-{n}: 1\r\n")).collect();
    for (line, more, status) in [
        ("GET http://evil.example/v1/tasks", "", "403"),
        ("GET http://ADDRESS/v1/tasks", "", "200"),
        ("GET /v1/tasks", many.concat().as_str(), "431"),
    ] {
        let head = format!(
            "{line} HTTP/1.0\r\nhost: ADDRESS\r\nauthorization: Bearer {token}\r\n{more}\r\n"
        );
        let mut answer = String::new();
        server.send(&head).read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{line}: {answer}");
    }
    server.end();
}
