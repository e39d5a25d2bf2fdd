//! Nothing outlives its task, however it ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::Runner;
use antiphon_core::{EventBody, HandlingMode};
use antiphon_terminal::Watching;
use rustix::process::{Pid, Signal, kill_process};

use crate::processes;
use crate::viewer::Viewer;
use crate::world::{World, script, shell};

/// Where a process that is to be killed puts its folder.
const HOST: &str = "TEST_HOST_FOLDER";

/// Sleeps in the foreground, in the background, and as a daemon with nothing to know it by.
fn family(mark: &str) -> String {
    format!(
        "echo go; sleep {mark}1 & \
         (setsid env -i /bin/bash -c 'sleep {mark}2 & disown; exec sleep {mark}3' \
         </dev/null >/dev/null 2>&1 &) ; sleep {mark}4; true"
    )
}

#[tokio::test]
async fn a_canceled_task_ends_its_program_its_children_and_daemons() {
    let world = World::new(script(&family("8101")));
    let mut running = world.begin(None).await;
    processes::are(4, "sleep 8101").await;
    let task_id = running.task_id.clone();
    running.cancel();
    running.ended().await.unwrap();
    assert_eq!(processes::with("sleep 8101"), Vec::<i32>::new());
    // Who canceled it writes so.
    let last = world.events(&task_id).await.pop().unwrap();
    assert!(!last.ends_task(), "{last:?}");
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_before_its_task() {
    let world = World::new(script(&family("8102").replace("; sleep 81024", "; read -p '> ' x")));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    processes::are(3, "sleep 8102").await;
    running.say("end", HandlingMode::Steer).await;
    running.ended().await.unwrap();
    assert_eq!(processes::with("sleep 8102"), Vec::<i32>::new());
    assert!(world.events(&task_id).await.last().is_some_and(EventBody::ends_task));
}

#[tokio::test]
async fn a_program_that_does_not_want_to_end_is_killed() {
    let stubborn = "trap '' TERM HUP INT; echo go; sleep 8103; while true; do sleep 8103; done";
    let world = World::new(script(stubborn));
    let mut running = world.begin(None).await;
    processes::are(1, "sleep 8103").await;
    let begun = Instant::now();
    running.cancel();
    running.ended().await.unwrap();
    assert_eq!(processes::with("sleep 8103"), Vec::<i32>::new());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_interactive_shell_ends_at_once() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let mut viewer =
        Viewer::attach_to(&world, &running.task_id, Watching::ReadOnly, (24, 80)).await;
    viewer.sees("ready>").await;
    let begun = Instant::now();
    running.rest();
    running.ended().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    viewer.leaves().await.unwrap();
}

#[tokio::test]
async fn a_task_that_is_let_go_of_leaves_nothing() {
    let world = World::new(script(&family("8104")));
    let running = world.begin(None).await;
    processes::are(4, "sleep 8104").await;
    running.abandon().await;
    processes::are(0, "sleep 8104").await;
}

#[tokio::test]
async fn a_killed_process_leaves_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::a_host_that_is_killed", "--ignored"])
        .env(HOST, tmp.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    processes::are(4, "sleep 8105").await;
    host.kill().unwrap();
    host.wait().unwrap();
    processes::are(0, "sleep 8105").await;
}

#[tokio::test]
#[ignore = "another test starts it, to kill it"]
async fn a_host_that_is_killed() {
    assert!(std::env::var_os(HOST).is_some());
    let world = World::new(script(&family("8105")));
    let running = world.begin(None).await;
    let _ = running.ended().await;
}

#[tokio::test]
async fn a_killed_guard_leaves_nothing() {
    let world = World::new(script(&family("8106").replace("env -i", "env")));
    let running = world.begin(None).await;
    processes::are(4, "sleep 8106").await;
    let guards = processes::with(env!("CARGO_BIN_EXE_antiphon-terminal-guard"));
    let ours = guards.into_iter().filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("8106")
    });
    for pid in ours {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    assert_eq!(processes::with("sleep 8106"), Vec::<i32>::new());
    let error = world.end(&task_id).await.detail.unwrap()["error"].to_string();
    assert!(error.contains("its guard process was killed"), "{error}");
    assert_eq!(world.runner.kind(), "terminal");
}
