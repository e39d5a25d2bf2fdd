//! Orders for one agent run in order, others concurrently; retries and shutdown.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::world::{World, read, response_at, stop, stopped, until};

#[tokio::test]
async fn orders_for_one_agent_are_executed_and_answered_one_after_the_other() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    assert_eq!(world.orders.started(), ["a", "b"]);
    world.orders.gate.add_permits(1);
    until(|| (world.orders.calls() == 3).then_some(())).await;
    assert!(read(&world.path("1.response.json")).is_some(), "answered before the next begins");
    assert_eq!(read(&world.path("2.response.json")), None);
    world.orders.gate.add_permits(1);
    world.response("2").await;
}

#[tokio::test]
async fn orders_for_one_task_are_executed_one_after_the_other() {
    let world = World::watched().await;
    world.orders.hold("t");
    world.drop("1.json", r#"{"action":"cancel","taskId":"t"}"#);
    world.drop("2.json", r#"{"action":"cancel","taskId":"t"}"#);
    world.drop("3.json", r#"{"action":"cancel","taskId":"u"}"#);
    world.response("3").await;
    assert_eq!(world.orders.started().iter().filter(|target| *target == "t").count(), 1);
    world.orders.gate.add_permits(2);
    world.response("1").await;
    world.response("2").await;
}

#[tokio::test]
async fn files_are_read_by_modification_time_then_by_name() {
    let world = World::new();
    let now = SystemTime::now();
    for (name, age_s) in [("a", 1), ("b", 3), ("d", 2), ("c", 2)] {
        let context = json!({"action": "update_agent_context", "name": "x", "context": name});
        world.drop(&format!("{name}.json"), &context.to_string());
        let file = File::options().write(true).open(world.path(&format!("{name}.json"))).unwrap();
        file.set_modified(now - Duration::from_secs(age_s)).unwrap();
    }
    world.pass().await;
    let orders: Vec<String> = world.orders.effects().iter().map(|it| format!("{it:?}")).collect();
    let order: Vec<usize> = ["\"b\"", "\"c\"", "\"d\"", "\"a\""]
        .iter()
        .map(|body| orders.iter().position(|order| order.contains(body)).unwrap())
        .collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[tokio::test]
async fn the_number_of_concurrent_orders_is_limited() {
    let mut world = World::new();
    world.settings.orders_max = 3;
    for nth in 0..10 {
        let agent = format!("a{nth}");
        world.orders.hold(&agent);
        world.drop(&format!("{nth}.json"), &stop(&agent));
    }
    world.begin();
    until(|| (world.orders.calls() == 3).then_some(())).await;
    world.orders.gate.add_permits(10);
    for nth in 0..10 {
        world.response(&nth.to_string()).await;
    }
    assert_eq!(world.orders.most_running(), 3);
}

#[tokio::test]
async fn an_order_that_waits_for_a_result_does_not_block_others() {
    let mut world = World::new();
    world.settings.orders_max = 1;
    world.start().await;
    world.orders.hold("dev");
    for name in ["1", "2"] {
        let invoke = json!({"action": "invoke", "name": "dev", "prompt": name, "wait": true});
        world.drop(&format!("{name}.json"), &invoke.to_string());
    }
    until(|| (world.orders.calls() == 2).then_some(())).await;
    world.drop("3.json", &stop("other"));
    world.response("3").await;
    world.drop("4.json", &stop("dev"));
    until(|| (world.orders.calls() == 4).then_some(())).await;
    world.orders.gate.add_permits(3);
    assert_eq!(world.comparable("1").await["result"], json!({"echo": "1"}));
    assert_eq!(world.comparable("2").await["result"], json!({"echo": "2"}));
    world.response("4").await;
}

#[tokio::test]
async fn an_order_that_is_temporarily_unavailable_is_tried_again_in_its_turn() {
    let world = World::watched().await;
    world.orders.unavailable(2);
    world.drop("1.json", &stop("a"));
    until(|| world.orders.is_available().then_some(())).await;
    assert_eq!(read(&world.path("1.response.json")), None);
    world.drop("2.json", &stop("a"));
    assert_eq!(world.comparable("1").await["ok"], true);
    world.response("2").await;
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("a")]);
    assert_eq!(world.orders.calls(), 4);
}

#[tokio::test]
async fn a_request_that_is_deleted_before_its_turn_is_withdrawn() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    fs::remove_file(world.path("2.json")).unwrap();
    world.orders.gate.add_permits(9);
    world.response("1").await;
    world.drop("4.json", &stop("a"));
    world.response("4").await;
    assert_eq!(world.orders.effects(), [stopped("b"), stopped("a"), stopped("a")]);
    assert_eq!(read(&world.path("2.response.json")), None);
}

#[tokio::test]
async fn a_request_that_is_replaced_before_its_turn_is_executed_in_its_new_form() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"old"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    world.drop("2.json", r#"{"action":"stop_agent","name":"c"}"#);
    world.orders.gate.add_permits(1);
    assert_eq!(world.comparable("2").await["agent"], "c");
    assert_eq!(world.orders.effects(), [stopped("b"), stopped("a"), stopped("c")]);
}

#[tokio::test]
async fn a_request_that_is_replaced_while_it_is_executed_is_answered_and_so_is_the_new_one() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    world.drop("1.json", &stop("b"));
    world.orders.gate.add_permits(1);
    until(|| read(&world.path("1.response.json")).filter(|it| it.agent.as_deref() == Some("b")))
        .await;
    assert_eq!(world.orders.effects(), [stopped("a"), stopped("b")]);
}

#[tokio::test]
async fn at_shutdown_running_orders_finish_and_no_other_starts() {
    let mut world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    world.drop("2.json", r#"{"action":"send","name":"a","message":"hi"}"#);
    world.drop("3.json", &stop("b"));
    world.response("3").await;
    let (orders, wait) = (
        world.orders.clone(),
        json!({"action": "invoke", "name": "w", "prompt": "p", "wait": true}),
    );
    orders.hold("w");
    world.drop("4.json", &wait.to_string());
    until(|| (orders.calls() == 3).then_some(())).await;
    let release = async { orders.gate.add_permits(1) };
    tokio::join!(world.end(), release);
    assert!(read(&world.path("1.response.json")).is_some());
    assert_eq!(read(&world.path("2.response.json")), None);
    assert_eq!(read(&world.path("4.response.json")), None);
    assert_eq!(orders.effects(), [stopped("b"), stopped("a")]);
    orders.gate.add_permits(9);
    assert_eq!(world.pass().await.answered, 2);
}

#[tokio::test]
async fn an_order_that_panics_does_not_block_others() {
    let world = World::watched().await;
    world.drop("1.json", r#"{"action":"cancel","taskId":"fatal"}"#);
    until(|| (world.orders.started() == ["fatal"]).then_some(())).await;
    world.drop("2.json", &stop("a"));
    world.response("2").await;
    assert_eq!(read(&world.path("1.response.json")), None, "its outcome is unknown");
}

#[tokio::test]
async fn a_request_whose_folder_is_gone_does_not_block_others() {
    let world = World::watched().await;
    world.orders.hold("a");
    world.drop("1.json", &stop("a"));
    until(|| (world.orders.calls() == 1).then_some(())).await;
    fs::remove_dir_all(world.path("")).unwrap();
    world.orders.gate.add_permits(2);
    let other = world.requests().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("2.json"), stop("a")).unwrap();
    response_at(&other.join("2.response.json")).await;
    assert_eq!(world.orders.effects().len(), 2);
}
