//! The same request is never executed twice, after any change of its file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use antiphon_file_drop::PassCounts;
use serde_json::json;

use crate::world::{World, names, stop, stopped, until};

#[tokio::test]
async fn requests_dropped_while_no_service_runs_are_answered_at_the_next_start() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.drop(&format!("{name}.json"), &stop(name));
    }
    world.begin();
    for name in ["a", "b", "c"] {
        assert_eq!(world.comparable(name).await["agent"], name);
    }
    world.end().await;
    assert_eq!(world.orders.calls(), 3);
}

#[tokio::test]
async fn an_answered_request_is_not_executed_again_after_a_restart() {
    let mut world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.response("a").await;
    world.end().await;
    assert_eq!(world.pass().await, PassCounts::default());
    world.start().await;
    assert_eq!(world.response("a").await, first);
    assert_eq!(world.orders.calls(), 1);
}

#[tokio::test]
async fn the_same_file_dropped_again_has_its_response_already() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.response("a").await;
    world.drop("a.json", &stop("a"));
    // Answered after the first, so the first was read.
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    assert_eq!(world.response("a").await, first);
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("b")]);
    assert_eq!(world.orders.calls(), 2);
}

#[tokio::test]
async fn a_request_repeated_after_everything_was_deleted_has_no_second_effect() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.comparable("a").await;
    fs::remove_file(world.path("a.json")).unwrap();
    fs::remove_file(world.path("a.response.json")).unwrap();
    world.drop("a.json", &stop("a"));
    assert_eq!(world.comparable("a").await, first);
    assert_eq!(world.orders.effects(), [stopped("a")]);
    assert_eq!(world.orders.calls(), 2);
}

#[tokio::test]
async fn a_deleted_response_is_written_again_without_a_second_effect() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_millis(50);
    world.start().await;
    world.drop("a.json", &stop("a"));
    let first = world.comparable("a").await;
    fs::remove_file(world.path("a.response.json")).unwrap();
    assert_eq!(world.comparable("a").await, first);
    assert_eq!(world.orders.effects(), [stopped("a")]);
}

#[tokio::test]
async fn new_content_under_an_answered_name_is_a_new_request() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.response("a").await;
    world.drop("a.json", &stop("b"));
    let second = world.next_response("a", &first).await;
    assert_eq!(second.agent.as_deref(), Some("b"));
    assert_eq!(world.names(), ["a.json", "a.response.json"]);
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("b")]);
}

#[tokio::test]
async fn a_copy_under_another_name_is_another_request() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    world.response("a").await;
    fs::copy(world.path("a.json"), world.path("b.json")).unwrap();
    assert_eq!(world.comparable("b").await["request"], "b.json");
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("a")]);
}

#[tokio::test]
async fn a_copy_with_an_id_is_the_same_request_with_a_response_of_its_own() {
    let world = World::watched().await;
    let request = json!({"action": "spawn_agent", "name": "a", "profile": "p", "id": "x-1"});
    world.drop("a.json", &request.to_string());
    let first = world.comparable("a").await;
    fs::copy(world.path("a.json"), world.path("b.json")).unwrap();
    let mut second = world.comparable("b").await;
    assert_eq!(second["request"], "b.json");
    second["request"] = "a.json".into();
    assert_eq!(second, first);
    assert_eq!((world.orders.effects().len(), world.orders.calls()), (1, 2));
}

#[tokio::test]
async fn the_same_id_of_another_requester_is_another_request() {
    let world = World::watched().await;
    let request = json!({"action": "stop_agent", "name": "a", "id": "x-1"}).to_string();
    world.drop("a.json", &request);
    world.response("a").await;
    let other = world.requests().join("lead");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.json"), &request).unwrap();
    crate::world::response_at(&other.join("a.response.json")).await;
    assert_eq!(world.orders.effects().len(), 2);
}

#[tokio::test]
async fn the_response_of_a_renamed_request_is_moved_too() {
    let world = World::watched().await;
    world.drop_old("a.json", &stop("a"));
    let mut first = world.comparable("a").await;
    fs::rename(world.path("a.json"), world.path("done.json")).unwrap();
    first["request"] = "done.json".into();
    assert_eq!(world.comparable("done").await, first);
    until(|| (world.names() == ["done.json", "done.response.json"]).then_some(())).await;
    assert_eq!(world.orders.calls(), 1);
}

#[tokio::test]
async fn the_response_of_a_request_renamed_while_no_service_runs_is_moved_too() {
    let mut world = World::watched().await;
    world.drop_old("a.json", &stop("a"));
    world.response("a").await;
    world.end().await;
    fs::rename(world.path("a.json"), world.path("done.json")).unwrap();
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(world.names(), ["done.json", "done.response.json"]);
    assert_eq!(world.orders.calls(), 1);
}

#[tokio::test]
async fn a_request_that_was_answered_within_a_tick_of_the_clock_is_executed_once() {
    let mut world = World::watched().await;
    world.drop("a.json", &stop("a"));
    world.response("a").await;
    world.end().await;
    let written = fs::metadata(world.path("a.json")).unwrap().modified().unwrap();
    let response = fs::File::options().write(true).open(world.path("a.response.json")).unwrap();
    response.set_modified(written).unwrap();
    fs::rename(world.path("a.json"), world.path("done.json")).unwrap();
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(world.names(), ["done.json", "done.response.json"]);
    assert_eq!(world.orders.calls(), 1);
}

#[tokio::test]
async fn a_request_that_is_renamed_while_it_is_executed_is_executed_once() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop_old("a.json", &stop("a"));
    until(|| (world.orders.started() == ["a"]).then_some(())).await;
    fs::rename(world.path("a.json"), world.path("b.json")).unwrap();
    world.drop("c.json", &stop("c"));
    world.response("c").await;
    world.orders.gate.add_permits(2);
    assert_eq!(world.comparable("b").await["agent"], "a");
    until(|| (!world.path("a.response.json").exists()).then_some(())).await;
    assert_eq!(world.orders.effects().len(), 2);
    assert_eq!(world.orders.started(), ["a", "c"]);
}

#[tokio::test]
async fn the_same_text_in_a_new_file_is_not_mistaken_for_a_renamed_file() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    world.response("a").await;
    fs::remove_file(world.path("a.json")).unwrap();
    world.drop("b.json", &stop("a"));
    world.response("b").await;
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("a")]);
}

#[tokio::test]
async fn a_hard_link_is_a_copy() {
    let world = World::watched().await;
    let elsewhere = world.project().join("elsewhere.json");
    fs::write(&elsewhere, stop("a")).unwrap();
    fs::hard_link(&elsewhere, world.path("a.json")).unwrap();
    world.response("a").await;
    fs::hard_link(&elsewhere, world.path("b.json")).unwrap();
    world.response("b").await;
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("a")]);
}

#[tokio::test]
async fn a_file_that_is_touched_is_the_same_request() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.response("a").await;
    let file = fs::File::options().write(true).open(world.path("a.json")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    assert_eq!(world.response("a").await, first);
    assert_eq!(world.orders.calls(), 2);
}

#[tokio::test]
async fn temporary_files_left_by_a_kill_are_removed() {
    let world = World::new();
    fs::write(world.path(".response-0.tmp"), "{").unwrap();
    fs::write(world.path(".drop-0.tmp"), "{").unwrap();
    let old = fs::File::create(world.path(".drop-1.tmp")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    assert_eq!(world.pass().await, PassCounts::default());
    assert_eq!(names(&world.path("")), [".drop-0.tmp"], "a client may be about to rename it");
}

#[tokio::test]
async fn a_request_that_is_touched_while_it_is_executed_is_executed_once() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("a.json", &stop("a"));
    until(|| (world.orders.started() == ["a"]).then_some(())).await;
    fs::set_permissions(world.path("a.json"), fs::Permissions::from_mode(0o600)).unwrap();
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    world.orders.gate.add_permits(9);
    world.response("a").await;
    world.drop("c.json", &stop("a"));
    world.response("c").await;
    assert_eq!(world.orders.started(), ["a", "b", "a"]);
}
