//! Requests that were in a project before anything was done in it, and folders of requests that others
//! may look into.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use crate::project::{Project, dropped};

/// The folders of requests, below the project.
const FOLDERS: [&str; 2] = [".antiphon/requests", ".ideai/requests"];

/// Lays orders into a project as a clone under `umask 077` does.
fn brought(project: &Project) {
    for below in FOLDERS {
        let folder = project.path().join(below).join("evil");
        fs::create_dir_all(&folder).unwrap();
        for private in folder.ancestors().take(3) {
            fs::set_permissions(private, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let spawn = json!({"action": "spawn_agent", "name": "echo", "profile": "native"});
        dropped(&folder, "spawn.json", &spawn);
    }
}

fn aside(project: &Project, below: &str) -> PathBuf {
    project.path().join(format!("{below}.before-first-start"))
}

/// What lies in a requester's folder.
fn names(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder.join("evil")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn requests_that_were_there_before_the_journal_are_set_aside_by_who_makes_it() {
    let project = Project::new();
    brought(&project);
    // A name that is taken is left to whoever has it.
    fs::create_dir(aside(&project, FOLDERS[1])).unwrap();
    let stop = json!({"action": "stop_agent", "name": "quiet"}).to_string();
    let seen = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((seen.code, seen.out.as_str()), (0, "not running: quiet\n"), "{seen:?}");
    assert_eq!(seen.err.matches("move what is yours in again\n").count(), 2, "{seen:?}");
    assert_eq!(names(aside(&project, FOLDERS[0])), ["spawn.json"]);
    let second = project.path().join(".ideai/requests.before-first-start-2");
    assert_eq!(names(second), ["spawn.json"]);
    assert!(project.antiphon(&["agents", "status"]).out.starts_with("nobody"));
    // What lies there from now on is the owner's.
    brought(&project);
    let again = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((again.code, again.err.as_str()), (0, ""), "{again:?}");
}

#[test]
fn a_request_into_a_folder_that_others_may_look_into_says_what_to_do_at_once() {
    let project = Project::new();
    let server = project.serve();
    let folder = project.path().join(".antiphon/requests");
    project.until("the folder of requests is there", |_| folder.is_dir().then_some(()));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let stop = json!({"action": "stop_agent", "name": "quiet"}).to_string();
    let seen = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((seen.code, seen.out.as_str()), (2, ""), "{seen:?}");
    assert!(seen.err.contains(&format!("`chmod 700 {}`", folder.display())), "{seen:?}");
    assert!(!folder.join("cli").exists(), "nothing was asked for");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let seen = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((seen.code, seen.out.as_str()), (0, "not running: quiet\n"), "{seen:?}");
    server.end();
}

#[test]
fn requests_that_were_there_before_the_first_start_are_set_aside_by_the_server() {
    let project = Project::new();
    brought(&project);
    let server = project.serve();
    for below in FOLDERS {
        assert_eq!(names(aside(&project, below)), ["spawn.json"]);
    }
    project.caught_up("quiet");
    let status = project.antiphon(&["agents", "status", "--json"]).json();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    server.end();
}
