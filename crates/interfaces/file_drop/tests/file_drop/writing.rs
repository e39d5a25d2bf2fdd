//! How people and programs write files: at once, in steps, by editors, and incompletely.

use std::fs::{self, File};
use std::io::Write;
use std::time::Duration;

use antiphon_file_drop::{PassCounts, Response};
use serde_json::json;

use crate::world::{World, names, read, stop, stopped, until};

#[tokio::test]
async fn a_file_that_is_written_in_two_steps_is_one_request() {
    let world = World::watched().await;
    let text = stop("a");
    let (first, second) = text.split_at(10);
    let mut file = File::create(world.path("a.json")).unwrap();
    file.write_all(first.as_bytes()).unwrap();
    file.sync_all().unwrap();
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    file.write_all(second.as_bytes()).unwrap();
    assert_eq!(world.comparable("a").await["agent"], "a");
    // The final line break alone is not a new request.
    file.write_all(b"\n").unwrap();
    drop(file);
    world.drop("c.json", &stop("c"));
    world.response("c").await;
    assert_eq!(world.orders.effects(), [stopped("b"), stopped("a"), stopped("c")]);
    assert_eq!(world.orders.calls(), 3);
}

#[tokio::test]
async fn a_complete_file_is_executed_before_it_is_closed() {
    let mut world = World::new();
    world.settings.settle = Duration::from_secs(600);
    world.start().await;
    let mut file = File::create(world.path("a.json")).unwrap();
    file.write_all(stop("a").as_bytes()).unwrap();
    world.response("a").await;
    drop(file);
}

#[tokio::test]
async fn a_file_that_is_truncated_and_rewritten_is_a_new_request() {
    let world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let first = world.response("a").await;
    let mut file = File::create(world.path("a.json")).unwrap();
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    file.write_all(stop("c").as_bytes()).unwrap();
    let second = world.next_response("a", &first).await;
    assert_eq!(second.agent.as_deref(), Some("c"));
}

#[tokio::test]
async fn an_editor_that_renames_a_temporary_file_is_supported() {
    let world = World::watched().await;
    // Like vim.
    fs::write(world.path(".a.json.swp"), "b0VIM").unwrap();
    fs::write(world.path("4913"), "").unwrap();
    fs::remove_file(world.path("4913")).unwrap();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    let first = world.response("a").await;
    fs::rename(world.path("a.json"), world.path("a.json~")).unwrap();
    fs::write(world.path("a.json"), stop("b")).unwrap();
    let second = world.next_response("a", &first).await;
    assert_eq!(second.agent.as_deref(), Some("b"));
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("b")]);
    assert_eq!(world.names(), [".a.json.swp", "a.json", "a.json~", "a.response.json"]);
}

#[tokio::test]
async fn files_whose_names_are_not_those_of_requests_are_ignored() {
    let world = World::new();
    let others =
        [".a.json", "#a.json", "#a.json#", "a.JSON", "a.json.tmp", "a.json~", "x.response.json"];
    for name in others {
        fs::write(world.path(name), stop("a")).unwrap();
    }
    assert_eq!(world.pass().await, PassCounts::default());
    let mut expected = others.map(str::to_owned);
    expected.sort();
    assert_eq!(world.names(), expected);
}

#[tokio::test]
async fn a_file_that_never_becomes_json_is_answered_and_rejected() {
    let world = World::watched().await;
    fs::write(world.path("a.json"), r#"{"action":"stop_ag"#).unwrap();
    let message = "it is not JSON: EOF while parsing a string at line 1 column 18";
    let error = json!({"code": "INVALID_REQUEST", "message": message});
    let answer =
        json!({"request": "a.json", "ok": false, "error": error, "setAside": "rejected/a.json"});
    assert_eq!(world.comparable("a").await, answer);
    let rejected = world.path("rejected");
    until(|| (world.names() == ["a.response.json", "rejected"]).then_some(())).await;
    assert_eq!(names(&rejected), ["a.json", "a.json.reason.txt"]);
    assert_eq!(fs::read_to_string(rejected.join("a.json")).unwrap(), r#"{"action":"stop_ag"#);
    let reason = fs::read_to_string(rejected.join("a.json.reason.txt")).unwrap();
    assert_eq!(reason, format!("INVALID_REQUEST: {message}\n"));
}

#[tokio::test]
async fn a_file_that_keeps_changing_is_not_rejected_early() {
    let mut world = World::new();
    world.settings.settle = Duration::from_millis(300);
    world.start().await;
    let mut file = File::create(world.path("a.json")).unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    // Longer than `settle` in total.
    for byte in stop("a").bytes() {
        ticks.tick().await;
        file.write_all(&[byte]).unwrap();
    }
    assert_eq!(world.comparable("a").await["ok"], true);
}

#[tokio::test]
async fn rejected_files_of_the_same_name_are_all_kept() {
    let world = World::watched().await;
    world.drop("a.json", r#"{"action":"x"}"#);
    let first = world.response("a").await;
    until(|| (!world.path("a.json").exists()).then_some(())).await;
    world.drop("a.json", r#"{"action":"y"}"#);
    let second = world.next_response("a", &first).await;
    assert_eq!(second.set_aside.as_deref(), Some("rejected/a.2.json"));
    until(|| (!world.path("a.json").exists()).then_some(())).await;
    // The first again: it has another response by now.
    world.drop("a.json", r#"{"action":"y"}"#);
    until(|| (!world.path("a.json").exists()).then_some(())).await;
    assert_eq!(world.response("a").await, second, "the same again is answered already");
    let kept = ["a.2.json", "a.2.json.reason.txt", "a.json", "a.json.reason.txt"];
    assert_eq!(names(&world.path("rejected")), kept);
}

#[tokio::test]
async fn a_rejected_file_can_be_fixed_and_dropped_again() {
    let world = World::watched().await;
    world.drop("a.json", r#"{"action":"stop_agent"}"#);
    let first = world.response("a").await;
    until(|| (!world.path("a.json").exists()).then_some(())).await;
    world.drop("a.json", &stop("a"));
    let second = world.next_response("a", &first).await;
    assert_eq!((second.ok, second.set_aside), (true, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_file_that_replaces_an_invalid_one_is_never_rejected() {
    let mut world = World::new();
    world.settings.settle = Duration::ZERO;
    world.start().await;
    for nth in 0..200 {
        world.drop("a.json", &format!("nonsense {nth}"));
        let agent = format!("a{nth}");
        world.drop("a.json", &stop(&agent));
        let of_this = |it: &Response| it.agent.as_ref() == Some(&agent);
        until(|| read(&world.path("a.response.json")).filter(of_this)).await;
    }
    assert_eq!(world.orders.effects().len(), 200);
}
