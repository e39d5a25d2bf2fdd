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
fn place_requests(project: &Project) {
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
fn requests_older_than_the_journal_are_set_aside_by_the_command_that_creates_it() {
    let project = Project::new();
    place_requests(&project);
    // An existing folder keeps its name.
    fs::create_dir(aside(&project, FOLDERS[1])).unwrap();
    let stop = json!({"action": "stop_agent", "name": "quiet"}).to_string();
    let seen = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((seen.code, seen.out.as_str()), (0, "not running: quiet\n"), "{seen:?}");
    assert_eq!(seen.err.matches("move your own requests back\n").count(), 2, "{seen:?}");
    assert_eq!(names(aside(&project, FOLDERS[0])), ["spawn.json"]);
    let second = project.path().join(".ideai/requests.before-first-start-2");
    assert_eq!(names(second), ["spawn.json"]);
    assert!(project.antiphon(&["agents", "status"]).out.starts_with("no live agents"));
    // Requests are trusted from now on.
    place_requests(&project);
    let again = project.fed(&["request", "-"], stop.as_bytes());
    assert_eq!((again.code, again.err.as_str()), (0, ""), "{again:?}");
}

#[test]
fn a_request_folder_that_other_users_can_read_is_refused_with_advice() {
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
fn requests_older_than_the_first_start_are_set_aside_by_the_server() {
    let project = Project::new();
    place_requests(&project);
    let server = project.serve();
    for below in FOLDERS {
        assert_eq!(names(aside(&project, below)), ["spawn.json"]);
    }
    project.caught_up("quiet");
    let status = project.antiphon(&["agents", "status", "--json"]).json();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    server.end();
}
