//! The examples of the guide work.

use std::process::Command;

use antiphon_core::OrderStatus;
use antiphon_file_drop::Response;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::world::World;

const GUIDE: &str = include_str!("../../../../../docs/file-drop.md");

/// The blocks of code in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    GUIDE.split(&begin).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

/// Runs a script of the guide in a project, and returns what it printed.
async fn run(world: &World, program: &str, script: &'static str) -> String {
    let mut command = Command::new(program);
    command.args(["-c", script]).current_dir(world.project());
    let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_shell_script_of_the_guide_works() {
    let world = World::watched().await;
    let [script] = blocks("sh")[..] else { panic!("one script") };
    let printed = run(&world, "sh", script).await;
    let response: Response = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (response.status, response.agent),
        (Some(OrderStatus::Stopped), Some("reviewer".into()))
    );
}

#[tokio::test]
async fn the_python_script_of_the_guide_works() {
    let world = World::watched().await;
    let [script] = blocks("python")[..] else { panic!("one script") };
    let printed = run(&world, "python3", script).await;
    assert!(printed.contains("'ok': True, 'status': 'accepted', 'agent': 'reviewer'"), "{printed}");
}

#[tokio::test]
async fn the_requests_and_the_response_of_the_guide_are_valid() {
    let world = World::new();
    let (mut requests, mut responses) = (0, 0);
    for block in blocks("json") {
        if serde_json::from_str::<Value>(block).unwrap().get("action").is_some() {
            world.drop(&format!("{requests}.json"), block);
            requests += 1;
        } else {
            let response: Response = serde_json::from_str(block).unwrap();
            assert_eq!(serde_json::to_string_pretty(&response).unwrap(), block.trim());
            responses += 1;
        }
    }
    assert_eq!((requests, responses), (4, 1));
    world.pass().await;
    assert_eq!(world.orders.effects().len(), requests);
}

#[test]
fn every_status_is_in_the_guide() {
    for status in [
        OrderStatus::Started,
        OrderStatus::AlreadyRunning,
        OrderStatus::Stopped,
        OrderStatus::NotRunning,
        OrderStatus::Updated,
        OrderStatus::Accepted,
        OrderStatus::Deduplicated,
        OrderStatus::Completed,
        OrderStatus::Failed,
        OrderStatus::Canceled,
        OrderStatus::AlreadyEnded,
    ] {
        let word = serde_json::to_value(status).unwrap();
        assert!(GUIDE.contains(word.as_str().unwrap()), "{word}");
    }
}
