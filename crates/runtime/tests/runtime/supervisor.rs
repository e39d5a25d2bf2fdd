//! Agents look after what they dispatched, and nothing else.

use std::sync::Arc;

use antiphon_core::{
    AgentDefinition, CallableAgents, EventBody, RenderClass, RenderMetadata, TaskStatus,
};
use antiphon_runtime::{Orchestrator, RuntimeDeps, TaskState};
use serde_json::{Value, json};

use crate::team::{
    Numbered, Roster, Team, agent, calls, otherwise, replying, results, says, script, step,
};
use crate::world::new_task;

/// Sends out `scout`, without waiting for it.
fn sends() -> String {
    calls(r#"{"agent":"scout","prompt":"look","join":"detached"}"#)
}

/// The id of the child, which is the same each time.
async fn child() -> String {
    let replies = script(&[("Be brief", 0, &sends()), ("I am scout", 0, &says("x"))]);
    let team = Team::new(replies + &otherwise(""), roster());
    run(&team).await;
    team.tasks().await[1].task_id.to_string()
}

fn roster() -> Roster {
    Roster::default().with(agent("scout"))
}

async fn run(team: &Team) -> TaskState {
    let world = RuntimeDeps { ids: Arc::new(Numbered::default()), ..team.world() };
    let orchestrator = Orchestrator::new(world);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    state
}

/// A lead that dispatches a scout, which does `scout`, then calls these tools, one a turn, and then
/// gives its last answer. `TASK` is the scout's task.
async fn lead(scout: &str, tools: &[(&str, &str)]) -> (Team, TaskState) {
    let child = child().await;
    let mut text = script(&[("Be brief", 0, &sends())]);
    for (index, (name, arguments)) in tools.iter().enumerate() {
        let call = step(name, &arguments.replace("TASK", &child));
        text += &replying(&format!("system_contains = \"Be brief\", turn = {}", index + 1), &call);
    }
    text += &replying("system_contains = \"I am scout\", turn = 0", scout);
    text += &replying("system_contains = \"I am scout\"", &says("scout heard {{last_user}}"));
    text += &otherwise(&says("the end"));
    let team = Team::new(text, roster());
    let state = run(&team).await;
    (team, state)
}

fn reported(state: &TaskState, index: usize) -> Value {
    let (text, _) = &results(state)[index];
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
}

#[tokio::test]
async fn a_task_that_is_waited_for_delivers_its_result_and_still_reports() {
    let (_, state) = lead(
        &says("a tree"),
        &[
            ("wait_task", r#"{"task_ids":["TASK"]}"#),
            ("get_task", r#"{"task_id":"TASK"}"#),
            ("list_my_tasks", "{}"),
        ],
    )
    .await;
    let waited = reported(&state, 1);
    assert_eq!(waited["results"][0]["content"], "a tree");
    assert_eq!(waited["results"][0]["status"], "completed");
    let got = reported(&state, 2);
    assert_eq!((&got["agent_id"], &got["result"]), (&json!("scout"), &json!("a tree")));
    assert_eq!(got["executor"], json!({"type": "local"}));
    assert_eq!(reported(&state, 3)["tasks"].as_array().map(Vec::len), Some(1));
    let reports = format!("{:?}", state.messages()).matches("[RESPONSE to").count();
    assert_eq!(reports, 1);
}

#[tokio::test]
async fn two_calls_may_wait_for_the_same_task() {
    let child = child().await;
    let wait = step("wait_task", &format!(r#"{{"task_ids":["{child}"]}}"#));
    let text = script(&[("Be brief", 0, &sends())])
        + &replying("system_contains = \"Be brief\", turn = 1", &format!("{wait}, {wait}"))
        + &replying(
            "system_contains = \"I am scout\"",
            &format!("{{ delay_ms = 50 }}, {}", says("a tree")),
        )
        + &otherwise(&says("the end"));
    let state = run(&Team::new(text, roster())).await;
    for index in [1, 2] {
        assert_eq!(reported(&state, index)["results"][0]["content"], "a tree");
    }
}

#[tokio::test]
async fn waiting_ends_when_its_time_is_over() {
    let (team, state) = lead(
        "{ stall = true }",
        &[
            ("wait_task", r#"{"task_ids":["TASK"],"timeout_s":1}"#),
            ("cancel_task", r#"{"task_id":"TASK"}"#),
        ],
    )
    .await;
    assert_eq!(reported(&state, 1)["results"][0]["status"], "running");
    assert_eq!(reported(&state, 2)["status"], "canceled");
    assert_eq!(team.tasks().await[1].status, TaskStatus::Canceled);
}

#[tokio::test]
async fn a_child_is_steered() {
    let scout = "{ delay_ms = 200 }, { call = { name = \"look\", arguments = {} } }";
    let (team, state) = lead(
        scout,
        &[
            ("send_task", r#"{"task_id":"TASK","text":"mind the step"}"#),
            ("wait_task", r#"{"task_ids":["TASK"],"mode":"any"}"#),
        ],
    )
    .await;
    // How each is to be shown: a step for the child, and its report, with which the parent continues.
    let child = team.tasks().await[1].task_id.clone();
    for (task_id, class) in
        [(&child, RenderClass::FlowStep), (&state.task_id, RenderClass::Continuation)]
    {
        let events = team.events(task_id).await;
        let queued = events.iter().find_map(|body| {
            let EventBody::MessageQueued(queued) = body else { return None };
            Some(queued.render_metadata)
        });
        assert_eq!(queued, Some(Some(RenderMetadata::usual(class))), "{task_id}");
    }
    assert_eq!(reported(&state, 1), "queued");
    let received = reported(&state, 2)["results"][0]["content"].to_string();
    assert!(received.contains("from tester") && received.contains("mind the step"), "{received}");
}

#[tokio::test]
async fn supervisor_tools_reach_only_descendants() {
    let (_, state) = lead(
        &says("x"),
        &[
            ("get_task", r#"{"task_id":"01970000-0000-7000-8000-000000000001"}"#),
            ("cancel_task", r#"{"task_id":"no-such-task"}"#),
            ("wait_task", r#"{"task_ids":[]}"#),
            ("send_task", r#"{"task_id":"TASK"}"#),
            ("get_task", r#"{"task_id":"TASK","more":1}"#),
        ],
    )
    .await;
    let words: Vec<Value> = (1..6).map(|index| reported(&state, index)["error"].clone()).collect();
    let expected =
        ["not_yours", "not_yours", "invalid_arguments", "invalid_arguments", "invalid_arguments"];
    assert_eq!(words, expected.map(Value::from));
    assert!(results(&state)[1..6].iter().all(|(_, is_error)| *is_error));
}

#[tokio::test]
async fn a_long_result_is_cut_and_whole_in_get_task() {
    let long = "{ text = \"word \", repeat = 60000 }";
    let (_, state) = lead(
        long,
        &[
            ("wait_task", r#"{"task_ids":["TASK"]}"#),
            ("get_task", r#"{"task_id":"TASK","offset":299990}"#),
        ],
    )
    .await;
    let content = &reported(&state, 1)["results"][0]["content"];
    assert!(content["note"].as_str().is_some_and(|note| note.contains("300000 bytes")));
    let part = reported(&state, 2);
    assert_eq!(
        (&part["result_part"], &part["result_chars"]),
        (&json!("word word "), &json!(300_000))
    );
    assert_eq!(part["next_offset"], Value::Null);
}

#[tokio::test]
async fn only_agents_that_may_call_others_have_the_supervisor_tools() {
    let alone = AgentDefinition { agents: CallableAgents::default(), ..agent("alone") };
    let some =
        AgentDefinition { agents: CallableAgents::Only(vec!["alone".to_owned()]), ..agent("some") };
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"some","prompt":"go"}"#)),
            ("Be brief", 1, &says("{{last_result}}")),
            (
                "I am some",
                0,
                &format!(
                    "{}, {}, {}",
                    calls(r#"{"agent":"some","prompt":"again"}"#),
                    calls(r#"{"system_prompt":"I am new.","prompt":"hi"}"#),
                    calls(r#"{"agent":"alone","prompt":"go"}"#)
                ),
            ),
            ("I am some", 1, &says("done")),
            ("I am alone", 0, &calls(r#"{"agent":"some","prompt":"go"}"#)),
            ("I am alone", 1, &says("{{last_result}}")),
        ]),
        Roster::default().with(alone).with(some),
    );
    run(&team).await;
    let tasks = team.tasks().await;
    assert_eq!(tasks.len(), 3, "{tasks:?}");
    let orchestrator = team.orchestrator();
    let some = orchestrator.task(&tasks[1].task_id).await.expect("a task");
    let words: Vec<Value> = (0..2).map(|index| reported(&some, index)["error"].clone()).collect();
    assert_eq!(words, [json!("may_not_call"), json!("may_not_call")]);
    let alone = reported(&some, 2)["result"]["content"].to_string();
    assert!(
        alone.contains("there is no tool `call_agent`, only these: look, act, hang"),
        "{alone}"
    );
}
