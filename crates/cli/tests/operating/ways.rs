//! TLS and the socket, and that other commands find a server behind either.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use crate::project_folder::{home, state};
use crate::server::{Project, Server};

fn socket(project: &Project) -> PathBuf {
    state(project.path()).join("server.sock")
}

/// What is answered on the socket.
fn ask(project: &Project, token: &str, line: &str) -> String {
    let mut stream = UnixStream::connect(socket(project)).unwrap();
    let request =
        format!("{line} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split(' ').nth(1).unwrap().to_owned()
}

/// A certificate of this machine, and its key.
fn certified(project: &Project) -> [String; 2] {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| project.path().join(name));
    fs::write(&files[0], own.cert.pem()).unwrap();
    fs::write(&files[1], own.signing_key.serialize_pem()).unwrap();
    files.map(|path| path.display().to_string())
}

#[test]
fn a_server_has_a_socket_for_its_user_as_long_as_it_works() {
    let project = Project::new();
    let server = Server::start(&project);
    let about = fs::symlink_metadata(socket(&project)).unwrap();
    assert!(about.file_type().is_socket());
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    assert_eq!(ask(&project, &project.token(), "GET /v1/tasks"), "200");
    assert_eq!(ask(&project, "wrong", "GET /v1/tasks"), "401");
    server.end();
    assert!(!socket(&project).exists());
}

#[test]
fn a_socket_in_its_place_is_replaced_and_another_file_is_not() {
    let project = Project::new();
    Server::start(&project).kill();
    assert!(socket(&project).exists());
    let server = Server::start(&project);
    assert_eq!(ask(&project, &project.token(), "GET /v1/tasks"), "200");
    server.end();
    // A process that listens there does not hold the journal: this server does.
    let other = UnixListener::bind(socket(&project)).unwrap();
    let server = Server::start(&project);
    assert_eq!(ask(&project, &project.token(), "GET /v1/tasks"), "200");
    server.end();
    drop(other);
    fs::write(socket(&project), "notes").unwrap();
    let server = Server::start(&project);
    server.end();
    assert_eq!(fs::read_to_string(socket(&project)).unwrap(), "notes");
    let output = project.run(&["serve", "--listen", "unix"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

#[test]
fn commands_find_a_server_that_has_only_a_socket() {
    let project = Project::new();
    let (server, place) = Server::reported(&project, &["--listen", "unix"]);
    assert_eq!(place, fs::canonicalize(socket(&project)).unwrap().display().to_string());
    let status = project.json(&["agents", "status", "--json"]);
    assert_eq!(status, serde_json::json!([]));
    let reported = project.run(&["tasks", "cancel", "unknown"]);
    assert_eq!(reported.status.code(), Some(2), "{reported:?}");
    server.end();
    assert!(!state(project.path()).join("server.json").exists());
}

#[test]
fn commands_find_a_server_that_speaks_tls() {
    let project = Project::new();
    let [cert, key] = certified(&project);
    let words = ["--listen", "0.0.0.0:0", "--tls-cert", &cert, "--tls-key", &key];
    let (server, place) = Server::reported(&project, &words);
    assert!(place.starts_with("https://0.0.0.0:"), "{place}");
    assert_eq!(project.json(&["agents", "status", "--json"]), serde_json::json!([]));
    server.end();
}

#[test]
fn commands_find_a_server_whose_socket_has_a_path_longer_than_an_address() {
    let project = Project::new();
    let deep = home(project.path()).join("a-folder-with-a-long-name".repeat(5));
    let deep = deep.display().to_string();
    let (server, place) =
        Server::reported(&project, &["--listen", "unix", "--state", deep.as_str()]);
    assert!(place.starts_with(&deep), "{place}");
    let status = project.json(&["agents", "status", "--json", "--state", &deep]);
    assert_eq!(status, serde_json::json!([]));
    server.end();
}

#[test]
fn what_cannot_be_spoken_is_refused_before_anything_is_begun() {
    let project = Project::new();
    let [cert, key] = certified(&project);
    for (words, says) in [
        (vec!["--tls-cert", &cert], "--tls-key"),
        (vec!["--tls-key", &key], "--tls-cert"),
        (vec!["--tls-cert", &key, "--tls-key", &key], "no certificate"),
        (vec!["--tls-cert", &cert, "--tls-key", &cert], "no private key"),
        (vec!["--tls-cert", "/nowhere", "--tls-key", &key], "/nowhere"),
        (vec!["--tls-cert", "/", "--tls-key", &key], "not a file"),
        (vec!["--listen", "unix", "--tls-cert", &cert, "--tls-key", &key], "no TLS"),
        (vec!["--listen", "0.0.0.0:0"], "--tls-cert"),
        (vec!["--listen", "here"], "unix"),
    ] {
        let output = project.run(&[&["serve"], words.as_slice()].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(!state(project.path()).exists(), "nothing was begun");
    }
}
