//! Budgets of child tasks, also on runners.

use std::sync::Arc;

use antiphon_core::{
    EventBody, HandlingMode, RunnerConfig, Runtime, TaskId, TaskStatus, UserMessage, WaitingFor,
};
use antiphon_runtime::{Budget, LimitRaise, NewTask, Orchestrator, RuntimeConfig, RuntimeDeps};

use chrono::DateTime;

use crate::budget::{ANSWER, Keys, allowing, budget, goes_on, limits, prices};
use crate::team::{Roster, Team, agent, agent_in, calls, replying, says, script, step};
use crate::world::new_task;

#[tokio::test]
async fn children_are_paid_by_the_payer_of_their_parent_and_wait_while_it_stays() {
    let two = r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"a","prompt":"2"}],"join":"all"}"#;
    let usage = "usage = { input_tokens = 1000, output_tokens = 1000 }\n";
    let mut text = script(&[("Be brief", 0, &calls(two))]) + usage;
    text += &replying("system_contains = \"I am a\"", &says("much"));
    text += usage;
    text += &replying("turn = 1", &says("both"));
    let team = Team::new(text, Roster::default().with(agent("a")));
    let keys = Keys([("key", limits(ANSWER, 0))].into());
    let budget = Budget { spend_limits: Arc::new(keys), ..Budget::default() };
    let world = RuntimeDeps { prices: prices(), ..team.world() };
    let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget });
    let task = NewTask { payer: Some("key".to_owned()), ..new_task("go") };
    let parent = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&parent).await.expect("a rest");
    assert_eq!((state.status, state.waiting_for), (TaskStatus::Running, None));
    let tasks = team.tasks().await;
    let found: Vec<_> = tasks.iter().map(|it| (it.payer.as_deref(), it.waiting_for)).collect();
    let child = (Some("key"), Some(WaitingFor::Budget));
    assert_eq!(found, [(Some("key"), None), child, child]);
    let more = LimitRaise { payer: Some("key".to_owned()), ..allowing(ANSWER * 9) };
    orchestrator.allow(more).await.expect("allowed");
    let state = goes_on(&orchestrator, &parent).await;
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some("both".into())));
}

/// A task on a runner that has spent the budget of two answers and waits: its parent, and itself.
async fn far_away() -> (Team, Orchestrator, TaskId, TaskId) {
    let usage = "usage = { input_tokens = 1000, output_tokens = 1000 }\n";
    let look = step("look", "{}");
    let mut text = script(&[("Be brief", 0, &calls(r#"{"agent":"far","prompt":"go"}"#))]);
    for turn in 0..2 {
        text += &replying(&format!("system_contains = \"I am far\", turn = {turn}"), &look);
        text += usage;
    }
    text += &replying("system_contains = \"I am far\"", &says("here"));
    text += usage;
    text += &replying("turn = 1", &says("{{last_result}}"));
    let elsewhere = Runtime::Runner(RunnerConfig::new("elsewhere"));
    let team = Team::new(text, Roster::default().with(agent_in("far", vec![elsewhere])));
    let world = RuntimeDeps { prices: prices(), ..team.world() };
    let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget: budget(ANSWER * 2) });
    let parent = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&parent).await.expect("a rest");
    let child = team.tasks().await[1].clone();
    assert_eq!((child.waiting_for, child.turns), (Some(WaitingFor::Budget), 2));
    (team, orchestrator, parent, child.task_id)
}

#[tokio::test]
async fn a_task_that_runs_elsewhere_is_interrupted_and_waits() {
    let (team, orchestrator, parent, _) = far_away().await;
    orchestrator.allow(allowing(ANSWER * 9)).await.expect("allowed");
    let state = goes_on(&orchestrator, &parent).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let child = &team.tasks().await[1];
    assert_eq!((child.status, child.turns), (TaskStatus::Completed, 3));
}

#[tokio::test]
async fn who_waits_elsewhere_hears_what_is_said_and_goes_on_waiting() {
    let (team, orchestrator, parent, child) = far_away().await;
    let mut events =
        orchestrator.follow(Some(child.clone()), orchestrator.head().await.expect("a head"));
    let said = UserMessage::text("left", DateTime::UNIX_EPOCH);
    orchestrator.send(&child, said, HandlingMode::Steer).await.expect("queued");
    while !matches!(events.next().await.expect("an event").body, EventBody::MessageAppended(_)) {}
    let state = orchestrator.task(&child).await.expect("a task");
    assert_eq!((state.waiting_for, state.queue.len()), (Some(WaitingFor::Budget), 0));
    orchestrator.allow(allowing(ANSWER * 9)).await.expect("allowed");
    let state = goes_on(&orchestrator, &parent).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    assert_eq!(team.tasks().await[1].status, TaskStatus::Completed);
}
