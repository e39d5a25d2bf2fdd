//! Tasks that run elsewhere have no more than those that run here.

use std::num::NonZeroU32;
use std::time::Duration;

use antiphon_core::{TaskLimits, TaskStatus};
use antiphon_runtime::{NewTask, TaskState};
use serde_json::{Value, json};

use crate::team::{Roster, Team, agent, calls, otherwise, replying, results, says, script, step};
use crate::world::new_task;

const ELSEWHERE: &str =
    r#""executor":{"kind":"force","type":"remote","runner":{"kind":"elsewhere"}}"#;

async fn run(team: &Team, limits: TaskLimits) -> TaskState {
    let orchestrator = team.orchestrator();
    let task = NewTask { limits, ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let ended = tokio::time::timeout(Duration::from_secs(60), orchestrator.wait(&task_id)).await;
    ended.expect("it ended").expect("a task")
}

#[tokio::test]
async fn a_budget_holds_for_tasks_on_a_runner() {
    let target = json!({"agent": "busy", "prompt": "go"});
    let six = format!(r#"{{{ELSEWHERE},"targets":{}}}"#, Value::from(vec![target; 6]));
    let text = script(&[("Be brief", 0, &calls(&six))])
        + &replying("system_contains = \"I am busy\", turn = 9", &says("done"))
        + &replying("system_contains = \"I am busy\"", &step("look", "{}"))
        + &otherwise(&says("so"));
    let team = Team::new(text, Roster::default().with(agent("busy")));
    let limits = TaskLimits { turns_max: NonZeroU32::new(12), ..TaskLimits::default() };
    let state = run(&team, limits).await;
    assert_eq!(state.status, TaskStatus::Failed);
    assert_eq!(state.detail.expect("a reason")["limit"]["limit"], "turns");
    let turns: u32 = team.tasks().await.iter().map(|task| task.turns).sum();
    // Each may have asked just when the last of it was spent.
    assert!((12..=18).contains(&turns), "{turns} turns");
}

#[tokio::test]
async fn time_is_over_also_for_one_that_does_not_listen() {
    let deaf = r#""executor":{"kind":"force","type":"remote","runner":{"kind":"elsewhere","config":{"deaf":true}}}"#;
    let arguments = format!(r#"{{{deaf},"agent":"a","prompt":"go","timeout_s":1}}"#);
    let team = Team::new(
        script(&[("Be brief", 0, &calls(&arguments)), ("Be brief", 1, &says("so"))]),
        Roster::default().with(agent("a")),
    );
    let state = run(&team, TaskLimits::default()).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let reported: Value = serde_json::from_str(&results(&state)[0].0).expect("JSON");
    assert_eq!(reported["result"]["status"], "failed");
    assert_eq!(reported["result"]["content"]["limit"]["limit"], "wall_clock");
}
