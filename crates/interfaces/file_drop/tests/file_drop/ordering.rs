//! Who is served when: the same agent in order, others at the same time, and what cannot be done now.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::world::{World, read, response_at, stop, stopped, until};

#[tokio::test]
async fn orders_for_one_agent_are_carried_out_one_after_the_other_and_answered_in_between() {
    let world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    assert_eq!(world.book.begun(), ["a", "b"]);
    world.book.gate.add_permits(1);
    until(|| (world.book.calls() == 3).then_some(())).await;
    assert!(read(&world.path("1.response.json")).is_some(), "answered before the next begins");
    assert_eq!(read(&world.path("2.response.json")), None);
    world.book.gate.add_permits(1);
    world.response("2").await;
}

#[tokio::test]
async fn orders_for_one_task_are_carried_out_one_after_the_other() {
    let world = World::watched().await;
    world.book.hold("t");
    world.drop("1.json", r#"{"action":"cancel","taskId":"t"}"#);
    world.drop("2.json", r#"{"action":"cancel","taskId":"t"}"#);
    world.drop("3.json", r#"{"action":"cancel","taskId":"u"}"#);
    world.response("3").await;
    assert_eq!(world.book.begun().iter().filter(|whom| *whom == "t").count(), 1);
    world.book.gate.add_permits(2);
    world.response("1").await;
    world.response("2").await;
}

#[tokio::test]
async fn files_are_taken_in_the_order_in_which_they_were_written_then_by_name() {
    let world = World::new();
    let now = SystemTime::now();
    for (name, age_s) in [("a", 1), ("b", 3), ("d", 2), ("c", 2)] {
        let context = json!({"action": "update_agent_context", "name": "x", "context": name});
        world.drop(&format!("{name}.json"), &context.to_string());
        let file = File::options().write(true).open(world.path(&format!("{name}.json"))).unwrap();
        file.set_modified(now - Duration::from_secs(age_s)).unwrap();
    }
    world.pass().await;
    let orders: Vec<String> = world.book.effects().iter().map(|it| format!("{it:?}")).collect();
    let order: Vec<usize> = ["\"b\"", "\"c\"", "\"d\"", "\"a\""]
        .iter()
        .map(|body| orders.iter().position(|order| order.contains(body)).unwrap())
        .collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[tokio::test]
async fn no_more_orders_than_allowed_are_carried_out_at_a_time() {
    let mut world = World::new();
    world.settings.orders_max = 3;
    for nth in 0..10 {
        let agent = format!("a{nth}");
        world.book.hold(&agent);
        world.drop(&format!("{nth}.json"), &stop(&agent));
    }
    world.begin();
    until(|| (world.book.calls() == 3).then_some(())).await;
    world.book.gate.add_permits(10);
    for nth in 0..10 {
        world.response(&nth.to_string()).await;
    }
    assert_eq!(world.book.most_under_way(), 3);
}

#[tokio::test]
async fn whoever_waits_for_a_result_holds_up_nobody() {
    let mut world = World::new();
    world.settings.orders_max = 1;
    world.start().await;
    world.book.hold("dev");
    for name in ["1", "2"] {
        let invoke = json!({"action": "invoke", "name": "dev", "prompt": name, "wait": true});
        world.drop(&format!("{name}.json"), &invoke.to_string());
    }
    until(|| (world.book.calls() == 2).then_some(())).await;
    world.drop("3.json", &stop("other"));
    world.response("3").await;
    world.drop("4.json", &stop("dev"));
    until(|| (world.book.calls() == 4).then_some(())).await;
    world.book.gate.add_permits(3);
    assert_eq!(world.told("1").await["result"], json!({"echo": "1"}));
    assert_eq!(world.told("2").await["result"], json!({"echo": "2"}));
    world.response("4").await;
}

#[tokio::test]
async fn an_order_that_cannot_be_carried_out_now_is_tried_again_and_keeps_its_turn() {
    let world = World::watched().await;
    world.book.unavailable(2);
    world.drop("1.json", &stop("a"));
    until(|| world.book.is_available().then_some(())).await;
    assert_eq!(read(&world.path("1.response.json")), None);
    world.drop("2.json", &stop("a"));
    assert_eq!(world.told("1").await["ok"], true);
    world.response("2").await;
    assert_eq!(world.book.effects(), [stopped("a"), stopped("a")]);
    assert_eq!(world.book.calls(), 4);
}

#[tokio::test]
async fn a_request_that_is_taken_away_before_its_turn_is_withdrawn() {
    let world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    fs::remove_file(world.path("2.json")).unwrap();
    world.book.gate.add_permits(9);
    world.response("1").await;
    world.drop("4.json", &stop("a"));
    world.response("4").await;
    assert_eq!(world.book.effects(), [stopped("b"), stopped("a"), stopped("a")]);
    assert_eq!(read(&world.path("2.response.json")), None);
}

#[tokio::test]
async fn a_request_that_is_replaced_before_its_turn_is_the_new_one() {
    let world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"old"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    world.drop("2.json", r#"{"action":"stop_agent","name":"c"}"#);
    world.book.gate.add_permits(1);
    assert_eq!(world.told("2").await["agent"], "c");
    assert_eq!(world.book.effects(), [stopped("b"), stopped("a"), stopped("c")]);
}

#[tokio::test]
async fn a_request_that_is_replaced_while_it_is_carried_out_is_answered_and_so_is_the_new_one() {
    let world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    world.drop("1.json", &stop("b"));
    world.book.gate.add_permits(1);
    until(|| read(&world.path("1.response.json")).filter(|it| it.agent.as_deref() == Some("b")))
        .await;
    assert_eq!(world.book.effects(), [stopped("a"), stopped("b")]);
}

#[tokio::test]
async fn what_has_begun_is_finished_and_nothing_else_is_begun_when_it_is_time_to_stop() {
    let mut world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    let (book, wait) =
        (world.book.clone(), json!({"action": "invoke", "name": "w", "prompt": "p", "wait": true}));
    book.hold("w");
    world.drop("4.json", &wait.to_string());
    until(|| (book.calls() == 3).then_some(())).await;
    let release = async { book.gate.add_permits(1) };
    tokio::join!(world.end(), release);
    assert!(read(&world.path("1.response.json")).is_some());
    assert_eq!(read(&world.path("2.response.json")), None);
    assert_eq!(read(&world.path("4.response.json")), None);
    assert_eq!(book.effects(), [stopped("b"), stopped("a")]);
    book.gate.add_permits(9);
    assert_eq!(world.pass().await.answered, 2);
}

#[tokio::test]
async fn an_order_that_makes_somebody_fall_over_holds_up_nobody_else() {
    let world = World::watched().await;
    world.drop("1.json", r#"{"action":"cancel","taskId":"fatal"}"#);
    until(|| (world.book.begun() == ["fatal"]).then_some(())).await;
    world.drop("2.json", &stop("a"));
    world.response("2").await;
    assert_eq!(read(&world.path("1.response.json")), None, "nobody knows what came of it");
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_because_its_folder_is_gone_holds_up_nobody() {
    let world = World::watched().await;
    world.book.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.book.calls() == 1).then_some(())).await;
    fs::remove_dir_all(world.path("")).unwrap();
    world.book.gate.add_permits(2);
    let other = world.requests().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("2.json"), stop("a")).unwrap();
    response_at(&other.join("2.response.json")).await;
    assert_eq!(world.book.effects().len(), 2);
}
