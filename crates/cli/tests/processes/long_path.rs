//! A state folder whose path is longer than the address of a socket may be.

use std::fs;
use std::process::Command;

use crate::project::{Project, Run, until};

/// Longest path of a socket on Linux, with its last byte.
const SOCKET_PATH_BYTES_MAX: usize = 108;

#[test]
fn processes_find_each_other_in_a_state_folder_with_a_long_path() {
    let project = Project::new();
    let folder = project.path().parent().unwrap().join("state").join("long".repeat(40));
    let within = |mut command: Command| {
        command.env("ANTIPHON_STATE", &folder);
        command
    };
    let wait = "until [ -e go ]; do sleep 0.02; done; echo waited >> effects";
    project.script("owner", &[wait]);
    let mut owner = Run::start(within(project.run_command("owner", &["--mode", "full"])));
    owner.until_event("tool_started");
    let socket = || {
        let folders = fs::read_dir(folder.join("projects")).unwrap();
        let mut sockets = folders.map(|entry| entry.unwrap().path().join("server.sock"));
        sockets.find(|socket| socket.exists())
    };
    until("the socket", || socket().is_some());
    assert!(socket().unwrap().as_os_str().len() > SOCKET_PATH_BYTES_MAX);
    project.script("second", &["echo second >> effects"]);
    Run::start(within(project.run_command("second", &["--mode", "full"]))).end().assert_whole();
    assert_eq!(project.read("effects"), "second\n", "it ran beside the owner");
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    assert_eq!(socket(), None, "its file is gone with the owner");
}
