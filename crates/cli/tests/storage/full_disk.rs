//! A really full disk: the state of the project is on a small file system in a namespace of its own,
//! which is filled and emptied while the server works.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::project_folder::{home, state};
use crate::server::{Server, commands, project, text, until, with_environment};

/// A path in the namespace of a process.
fn inside(process: u32, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap();
    Path::new("/proc").join(process.to_string()).join("root").join(path)
}

/// A server whose state is on a file system of a few megabytes.
fn on_small_disk(folder: &Path) -> Server {
    on_disk(folder, "size=6m", "true", "--mode full")
}

/// A server whose state is on a file system with these options. `before` is a command that runs before the server, in
/// the folder of the file system: `$0` is the program, `$2` the file with the token of the server.
fn on_disk(folder: &Path, options: &str, before: &str, arguments: &str) -> Server {
    let small = home(folder).join(".local/state");
    fs::create_dir_all(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o {options},mode=0700 tmpfs \"$1\" && {{ {before}; }} && exec \"$0\" serve --listen \
         127.0.0.1:0 {arguments}"
    );
    let mut command = Command::new("unshare");
    with_environment(&mut command, folder);
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let token = state(folder).join("token");
    command.arg(assert_cmd::cargo::cargo_bin!("antiphon")).args([&small, &token]);
    Server::spawn(command, |process| inside(process, &token))
}

/// A command in the namespace of the server.
fn beside(server: &Server, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    with_environment(&mut command, folder);
    let process = server.process.id().to_string();
    command.args(["--target", &process, "--user", "--mount", "--preserve-credentials"]);
    command.arg(format!("--wdns={}", folder.display())).arg("--");
    command.arg(assert_cmd::cargo::cargo_bin!("antiphon")).args(arguments);
    command
}

fn fill(disk: &Path) {
    let mut filler = fs::File::create(disk.join("filler")).unwrap();
    let block = [0_u8; 4096];
    while filler.write_all(&block).is_ok() {}
    // The rest, byte by byte.
    while filler.write_all(&block[..1]).is_ok() {}
}

#[test]
fn a_full_disk_makes_a_task_wait_and_it_goes_on_when_there_is_room() {
    let steps: Vec<String> =
        (0..6).map(|number| format!("echo {number} >> log; sleep 0.4")).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let folder = project(&commands(&steps));
    let server = on_small_disk(folder.path());
    let disk = inside(server.process.id(), &home(folder.path()).join(".local/state"));
    let log = folder.path().join("log");
    let task = server.task();
    until("the first command ran", || text(&log).contains('0').then_some(()));
    fill(&disk);
    let unhealthy = until("the disk is full", || {
        let health = server.ask("GET", "/health", "");
        let waits = server.metric("antiphon_tasks_waiting{reason=\"storage\"}") > 0.0;
        (health.status == 503 && waits).then_some(health)
    });
    assert_eq!(unhealthy.json()["problems"], json!(["journal_unavailable"]), "{unhealthy:?}");
    assert_eq!(server.ask("GET", "/health/ready", "").status, 503);
    assert_eq!(server.ask("GET", "/health/live", "").status, 200);
    assert!(server.metric("antiphon_journal_errors_total") >= 1.0);
    assert!(server.metric("antiphon_journal_up") < 0.5);
    let refused = server.ask("POST", "/v1/tasks", r#"{"message":"more"}"#);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.head.contains("retry-after:"), "{refused:?}");
    assert_eq!(refused.json()["details"]["cause"], "journal", "{refused:?}");
    for listed in [
        server.ask("GET", "/v1/tasks", "").json()["tasks"][0].clone(),
        server.ask("GET", &task, "").json(),
    ] {
        assert_eq!(listed["waiting_for"], "storage", "{listed}");
        assert_eq!(listed["wait"]["code"], "storage", "{listed}");
        assert!(listed["wait"]["next_at"].is_string(), "{listed}");
    }
    // Commands see it too, though the file cannot hold it.
    let watched = beside(&server, folder.path(), &["tasks", "watch"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let listed = beside(&server, folder.path(), &["tasks", "list", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["waiting_for"], "storage", "{listed}");
    let shown = beside(&server, folder.path(), &["tasks", "show", "last"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("waits until the journal can be written"), "{shown}");
    // Longer than all restarts of a task took before: 3.3 seconds.
    let before = text(&log);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(text(&log), before, "nothing runs that could not be recorded");
    assert_eq!(server.status(&task), "running");
    fs::remove_file(disk.join("filler")).unwrap();
    server.completed(&task);
    let watched = watched.wait_with_output().unwrap();
    let watched = String::from_utf8(watched.stdout).unwrap();
    assert!(watched.contains("waits until the journal can be written"), "{watched}");
    assert_eq!(text(&log), "0\n1\n2\n3\n4\n5\n", "each command ran once");
    until("the server is healthy again", || {
        (server.ask("GET", "/health", "").status == 200).then_some(())
    });
    assert!(server.metric("antiphon_tasks_waiting{reason=\"storage\"}") < 0.5);
    assert!(server.metric("antiphon_journal_up") > 0.5);
    let events = server.ask("GET", &format!("{task}/events"), "").body;
    assert!(!events.contains("outcome unknown"), "{events}");
    server.task();
    server.signal("-TERM");
    let (status, said) = server.ended();
    assert!(status.success(), "{said}");
    assert!(said.contains("the journal cannot be written"), "{said}");
    assert!(said.contains("the journal can be written again"), "{said}");
}

fn write_worker(folder: &Path) {
    let agents = folder.join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: Works.\nruntimes: [sandbox]\ntools: bash\n---\nYou work.\n";
    fs::write(agents.join("worker.md"), agent).unwrap();
}

const WORK: &str = r#"{"message":"go","agent":"worker"}"#;

#[test]
fn a_new_task_for_a_sandboxed_worker_is_refused_like_any_other_while_the_disk_is_full() {
    let folder = project(&commands(&["echo 0 >> log"]));
    write_worker(folder.path());
    let server = on_disk(folder.path(), "size=6m", "true", "--mode workspace --trust");
    let disk = inside(server.process.id(), &home(folder.path()).join(".local/state"));
    fill(&disk);
    let refused = server.ask("POST", "/v1/tasks", WORK);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.head.contains("retry-after:"), "{refused:?}");
    assert_eq!(refused.json()["details"]["cause"], "journal", "{refused:?}");
    fs::remove_file(disk.join("filler")).unwrap();
    let accepted = server.ask("POST", "/v1/tasks", WORK);
    assert_eq!(accepted.status, 201, "{accepted:?}");
    server.completed(&format!("/v1/tasks/{}", accepted.json()["task_id"].as_str().unwrap()));
    assert_eq!(text(&folder.path().join("log")), "0\n");
}

/// The disk takes no new file, and takes more events.
#[test]
fn a_task_waits_until_there_is_room_for_the_files_of_its_worker() {
    let folder = project(&commands(&["echo 0 >> log"]));
    write_worker(folder.path());
    let options = "size=6m,nr_inodes=300";
    let server = on_disk(folder.path(), options, "true", "--mode workspace --trust");
    let disk = inside(server.process.id(), &home(folder.path()).join(".local/state"));
    let names = (0..300).map(|number| disk.join(format!("filler-{number}")));
    let filled: Vec<PathBuf> = names.take_while(|path| fs::File::create(path).is_ok()).collect();
    assert!((1..300).contains(&filled.len()), "no file can be created any more");
    let accepted = server.ask("POST", "/v1/tasks", WORK);
    assert_eq!(accepted.status, 201, "{accepted:?}");
    let task = format!("/v1/tasks/{}", accepted.json()["task_id"].as_str().unwrap());
    let shown = until("the task waits", || {
        let shown = server.ask("GET", &task, "").json();
        (shown["waiting_for"] == "storage").then_some(shown)
    });
    assert_eq!(shown["status"], "pending", "{shown}");
    assert_eq!(text(&folder.path().join("log")), "");
    for path in filled {
        fs::remove_file(path).unwrap();
    }
    server.completed(&task);
    assert_eq!(text(&folder.path().join("log")), "0\n");
}

/// `signal` ends the process before: a kill, or an orderly stop.
fn start_on_full_disk(signal: &str) {
    let folder = project(&commands(&["echo 0 >> log"]));
    let first = format!(
        "\"$0\" serve --listen 127.0.0.1:0 > /dev/null & first=$!; \
         until [ -s \"$2\" ] && [ -s \"${{2%token}}journal.db-shm\" ]; do sleep 0.02; done; \
         kill {signal} $first; wait $first; dd if=/dev/zero of=\"$1/filler\" bs=4096 2> /dev/null; \
         dd if=/dev/zero bs=1 count=8192 2> /dev/null >> \"$1/filler\"; true"
    );
    let server = on_disk(folder.path(), "size=6m", &first, "--mode full");
    let disk = inside(server.process.id(), &home(folder.path()).join(".local/state"));
    assert_eq!(server.ask("GET", "/health/live", "").status, 200);
    assert_eq!(server.ask("GET", "/health", "").json()["problems"], json!(["journal_unavailable"]));
    let refused = server.ask("POST", "/v1/tasks", r#"{"message":"go"}"#);
    assert_eq!(refused.status, 503, "{refused:?}");
    fs::remove_file(disk.join("filler")).unwrap();
    until("the server is healthy", || {
        (server.ask("GET", "/health", "").status == 200).then_some(())
    });
    let task = server.task();
    server.completed(&task);
    assert_eq!(text(&folder.path().join("log")), "0\n");
}

#[test]
fn a_server_starts_on_a_full_disk_after_a_kill_and_works_when_there_is_room() {
    start_on_full_disk("-KILL");
}

#[test]
fn a_server_starts_on_a_full_disk_after_an_orderly_stop_and_works_when_there_is_room() {
    start_on_full_disk("-TERM");
}
