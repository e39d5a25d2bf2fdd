//! How changes are detected.

use std::fs;
use std::time::Duration;

use antiphon_file_drop::REQUESTERS_MAX;

use crate::world::{World, names, response_at, stop, stopped, until};

#[tokio::test]
async fn a_new_requester_is_served_at_once() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_secs(600);
    world.start().await;
    for nth in 0..20 {
        let requester = world.requests().join(format!("new {nth}"));
        fs::create_dir(&requester).unwrap();
        fs::write(requester.join("a.json"), stop("a")).unwrap();
        response_at(&requester.join("a.response.json")).await;
        // It stays served.
        fs::write(requester.join("b.json"), stop("a")).unwrap();
        response_at(&requester.join("b.response.json")).await;
    }
}

#[tokio::test]
async fn a_folder_that_is_moved_in_is_served_at_once() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_secs(600);
    world.start().await;
    let outside = world.project().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.json"), stop("a")).unwrap();
    fs::rename(&outside, world.requests().join("moved")).unwrap();
    response_at(&world.requests().join("moved/a.response.json")).await;
}

#[tokio::test]
async fn a_requester_folder_that_is_removed_and_created_again_is_served() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_millis(50);
    world.start().await;
    for nth in 0..5 {
        let agent = format!("a{nth}");
        world.drop("a.json", &stop(&agent));
        assert_eq!(world.comparable("a").await["agent"], agent);
        // Moved in one step: if it were emptied file by file, a deleted response would be written
        // again.
        fs::rename(world.path(""), world.project().join(format!("gone-{nth}"))).unwrap();
        fs::create_dir(world.path("")).unwrap();
    }
    assert_eq!(world.orders.effects().len(), 5);
}

#[tokio::test]
async fn all_folders_can_be_removed_and_created_again() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_millis(50);
    world.start().await;
    fs::remove_dir_all(world.project().join(".antiphon")).unwrap();
    until(|| world.requests().exists().then_some(())).await;
    fs::create_dir(world.path("")).unwrap();
    world.drop("a.json", &stop("a"));
    world.response("a").await;
    assert_eq!(world.orders.effects(), [stopped("a")]);
}

#[tokio::test]
async fn a_change_that_the_system_does_not_report_is_found_by_a_scan() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_millis(50);
    world.start().await;
    // Writing to a file through another hard link causes no notification in this folder.
    let elsewhere = world.project().join("elsewhere.json");
    fs::write(&elsewhere, "").unwrap();
    world.settings.settle = Duration::from_secs(600);
    fs::hard_link(&elsewhere, world.path("a.json")).unwrap();
    fs::write(&elsewhere, stop("a")).unwrap();
    world.response("a").await;
}

#[tokio::test]
async fn one_process_at_a_time_answers_and_the_next_takes_over() {
    let mut world = World::new();
    world.settings.rescan_every = Duration::from_millis(50);
    world.start().await;
    world.drop("a.json", &stop("a"));
    world.response("a").await;
    let both = [world.requests(), world.project().join(".ideai/requests")];
    assert_eq!(world.pass().await.busy, both);
    // A second service waits.
    let (settings, next) = (world.settings.clone(), tokio_util::sync::CancellationToken::new());
    let second = antiphon_file_drop::watch(
        world.project().to_owned(),
        settings,
        world.orders.clone(),
        next.clone(),
    );
    let mut standing_by = tokio::task::JoinSet::new();
    standing_by.spawn(second);
    world.end().await;
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    assert_eq!(world.orders.calls(), 2);
    next.cancel();
    standing_by.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn with_too_many_requesters_the_first_by_name_are_served() {
    let world = World::new();
    fs::remove_dir(world.path("")).unwrap();
    for nth in 0..=REQUESTERS_MAX {
        let requester = world.requests().join(format!("r{nth:04}"));
        fs::create_dir(&requester).unwrap();
        fs::write(requester.join("a.json"), stop(&format!("a{nth}"))).unwrap();
    }
    assert_eq!(world.pass().await.answered, REQUESTERS_MAX);
    let last = world.requests().join(format!("r{REQUESTERS_MAX:04}"));
    assert_eq!(names(&last), ["a.json"]);
    fs::remove_dir_all(world.requests().join("r0000")).unwrap();
    assert_eq!(world.pass().await.answered, 1);
}
