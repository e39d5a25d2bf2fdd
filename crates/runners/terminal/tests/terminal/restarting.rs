//! When a program is begun again, and when not.

use antiphon_core::{EventBody, TaskStatus};
use antiphon_terminal::{Restart, TerminalProfile, Watching};
use serde_json::json;

use crate::viewer::Viewer;
use crate::world::{World, script};

fn again(text: &str, max: u32) -> TerminalProfile {
    TerminalProfile { restart: Restart::OnFailure { max }, ..script(text) }
}

async fn beginnings(world: &World, task_id: &antiphon_core::TaskId) -> Vec<serde_json::Value> {
    let events = world.events(task_id).await.into_iter();
    let began = events.filter_map(|event| match event {
        EventBody::StatusChanged(change) if change.status == TaskStatus::Running => change.detail,
        _ => None,
    });
    began.collect()
}

#[tokio::test]
async fn a_program_that_fails_is_begun_again_and_that_is_written_down() {
    let world = World::new(again("echo x >> runs; [ $(wc -l < runs) = 3 ]", 5));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    assert_eq!(world.end(&task_id).await.status, TaskStatus::Completed);
    let reason = "it ended with exit code 1";
    assert_eq!(
        beginnings(&world, &task_id).await,
        [
            json!({ "attempt": 1, "typed": 0 }),
            json!({ "attempt": 2, "typed": 0, "reason": reason }),
            json!({ "attempt": 3, "typed": 0, "reason": reason }),
        ]
    );
}

#[tokio::test]
async fn a_program_that_fails_too_often_fails_its_task() {
    let world = World::new(again("echo x >> runs; exit 7", 1));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    assert_eq!(world.end(&task_id).await.status, TaskStatus::Failed);
    assert_eq!(std::fs::read_to_string(world.root().join("runs")).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn a_program_that_was_cut_off_is_never_begun_again_unless_the_profile_says_so() {
    for (profile, expected) in
        [(script("echo x >> runs; read y"), "x\n"), (again("echo x >> runs; read y", 1), "x\nx\n")]
    {
        let world = World::new(profile);
        let mut running = world.begin(None).await;
        let task_id = running.task_id.clone();
        let viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
        let runs = world.root().join("runs");
        while std::fs::read_to_string(&runs).unwrap_or_default() != "x\n" {
            tokio::task::yield_now().await;
        }
        running.rest();
        running.ended().await.unwrap();
        drop(viewer);
        let mut running = world.start(&task_id);
        if expected == "x\n" {
            running.ended().await.unwrap();
            let end = world.end(&task_id).await;
            let error = "`bash` was cut off, and is not begun again";
            assert_eq!(end.detail, Some(json!({ "code": "interrupted", "error": error })));
        } else {
            while std::fs::read_to_string(&runs).unwrap() != expected {
                tokio::task::yield_now().await;
            }
            running.cancel();
            running.ended().await.unwrap();
        }
        assert_eq!(std::fs::read_to_string(&runs).unwrap(), expected);
    }
}

#[tokio::test]
async fn a_task_that_has_ended_is_left_alone() {
    let world = World::new(script("echo x >> runs"));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let before = world.events(&task_id).await;
    world.start(&task_id).ended().await.unwrap();
    assert_eq!(world.events(&task_id).await, before);
    assert_eq!(std::fs::read_to_string(world.root().join("runs")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_task_that_two_are_asked_for_is_begun_once() {
    let world = World::new(script("echo x >> runs; sleep 0.2"));
    let first = world.begin(None).await;
    let second = world.start(&first.task_id);
    first.ended().await.unwrap();
    second.ended().await.unwrap();
    assert_eq!(std::fs::read_to_string(world.root().join("runs")).unwrap(), "x\n");
}
