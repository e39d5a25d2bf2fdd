//! The owner is killed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::project::{Ended, Project, Run, is_running, until};

/// How often the owner is killed under load; `ANTIPHON_KILLS` sets another number.
fn kills() -> u64 {
    std::env::var("ANTIPHON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

const CLIENTS: usize = 3;

/// Each effect is a line of its own.
fn scripts(project: &Project) {
    for name in ["owner", "one", "two", "three"] {
        let steps: Vec<String> =
            (0..6).map(|step| format!("echo {name}-{step} >> effects; sleep 0.03")).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        project.script(name, &steps);
    }
}

/// Three clients of an owner that is killed after a while.
fn one_kill(after: Duration) {
    let project = Project::new();
    scripts(&project);
    let mut owner = project.run("owner");
    owner.until_event("task_created");
    project.wait_for_owner();
    let clients: Vec<Run> = ["one", "two", "three"].iter().map(|name| project.run(name)).collect();
    std::thread::sleep(after);
    owner.kill();
    let ended: Vec<Ended> = clients.into_iter().map(Run::end).collect();
    ended.iter().for_each(Ended::assert_whole);
    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    for line in project.read("effects").lines() {
        *effects.entry(line.to_owned()).or_default() += 1;
    }
    assert!(effects.values().all(|count| *count == 1), "an effect happened twice: {effects:?}");
    let tasks = project.tasks();
    assert_eq!(tasks.len(), CLIENTS + 1, "no task is lost");
}

#[test]
fn an_owner_that_is_killed_under_load_is_not_missed() {
    for kill in 0..kills() {
        one_kill(Duration::from_millis(20 + (kill * 53) % 500));
    }
}

#[test]
fn a_client_takes_over_within_the_time_of_a_blink() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    project.script("client", &["sleep 0.1", "sleep 0.1", "echo last >> effects"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let mut client = project.run("client");
    client.until_event("tool_started");
    let before = project.owner();
    let killed = Instant::now();
    owner.kill();
    until("the next owner", || project.owner() != before && is_running(project.owner()));
    let took = killed.elapsed();
    client.end().assert_whole();
    assert_eq!(project.read("effects"), "last\n");
    // The machine of a test may be busy; a measurement alone is far below 200 ms.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn killing_the_process_that_the_shell_knows_ends_the_work() {
    let project = Project::new();
    project.script("owner", &["sleep 600"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    let behind = project.owner();
    assert_ne!(behind, owner.child.id());
    owner.kill();
    until("its end", || !is_running(behind));
}
