//! Tools that the client runs itself.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{
    AgentState, CallableAgents, EventBody, Position, RawJson, TaskId, TaskStatus, Tool, ToolCallId,
    ToolResult, WaitingFor,
};
use antiphon_runtime::{
    Conclusion, EXTERNAL_RESULT_BYTES_MAX, NewTask, Orchestrator, OrchestratorError,
    OrchestratorSettings, RuntimeDeps,
};
use serde_json::{Value, json};

use crate::counted_reads::CountedReads;
use crate::team::{Roster, Team, agent, calls, results, says, script, step};
use crate::world::new_task;

fn tool(name: &str) -> Arc<Tool> {
    let parameters = RawJson::parse(r#"{"type":"object"}"#).expect("JSON");
    Arc::new(Tool { name: name.to_owned(), description: "Mine.".to_owned(), parameters })
}

fn offering(tools: &[&str]) -> NewTask {
    NewTask { external_tools: tools.iter().map(|name| tool(name)).collect(), ..new_task("go") }
}

fn asks() -> Team {
    let both = format!("{}, {}", step("paint", r#"{"color":"red"}"#), step("look", "{}"));
    Team::new(
        script(&[("Be brief", 0, &both), ("Be brief", 1, &says("It is {{last_result}}"))]),
        Roster::default(),
    )
}

fn call() -> ToolCallId {
    ToolCallId::parse("call_0_0").expect("an id")
}

async fn requested(orchestrator: &Orchestrator) -> TaskId {
    let mut follower = orchestrator.follow(None, Position(0));
    loop {
        let event = follower.next().await.expect("an event");
        if let EventBody::ToolRequested(requested) = &event.body {
            assert_eq!(requested.tool_name, "paint");
            return event.task_id;
        }
    }
}

#[tokio::test]
async fn a_call_goes_out_and_its_result_comes_back_once_also_after_a_restart() {
    let team = asks();
    let first = team.orchestrator();
    let task_id = first.invoke(offering(&["paint"])).await.expect("accepted").task_id;
    requested(&first).await;
    first.shutdown(Duration::from_secs(5)).await;
    let second = team.orchestrator();
    second.recover().await.expect("recovered");
    let long = ToolResult::text("x".repeat(EXTERNAL_RESULT_BYTES_MAX + 1));
    let refused = second.tool_result(&task_id, &call(), long).await;
    assert!(matches!(refused, Err(OrchestratorError::ResultTooLong { .. })), "{refused:?}");
    second.tool_result(&task_id, &call(), ToolResult::text("painted")).await.expect("taken");
    let again = second.tool_result(&task_id, &call(), ToolResult::text("twice")).await;
    let gone = matches!(
        again,
        Err(OrchestratorError::NoSuchCall { .. } | OrchestratorError::Ended { .. })
    );
    assert!(gone, "{again:?}");
    let state = second.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let said: Vec<String> = results(&state).into_iter().map(|(text, _)| text).collect();
    assert!(said.contains(&"painted".to_owned()), "{said:?}");
    assert_eq!(team.tools.done()["look {}"], 1);
}

#[tokio::test]
async fn a_task_waits_for_a_client_that_sends_no_result() {
    let team = asks();
    let settings =
        OrchestratorSettings { client_tool_timeout: Duration::ZERO, ..team.world().settings };
    let orchestrator = Orchestrator::new(RuntimeDeps { settings, ..team.world() });
    let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let stands = (state.status, state.waiting_for);
    assert_eq!(stands, (TaskStatus::InputRequired, Some(WaitingFor::ToolResult)));
    orchestrator.tool_result(&task_id, &call(), ToolResult::text("late")).await.expect("taken");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
}

#[tokio::test]
async fn a_task_whose_client_is_late_is_not_started_again_and_again() {
    let team = asks();
    let world = team.world();
    let settings = OrchestratorSettings { client_tool_timeout: Duration::ZERO, ..world.settings };
    let journal = CountedReads::on(&world.journal);
    let orchestrator =
        Orchestrator::new(RuntimeDeps { settings, journal: journal.clone(), ..world });
    let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("a rest");
    for _ in 0..3 {
        // Each start of a task at rest reads what was written since.
        orchestrator.start(&task_id).await.expect("started");
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    journal.0.take();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let reads = journal.0.take().reads;
    assert_eq!(reads, 0, "the task is started again without a reason");
}

#[tokio::test]
async fn a_child_borrows_what_its_caller_was_offered() {
    for (tools, borrowed) in [(r#""inherit""#, true), (r#"["paint"]"#, true), (r#""none""#, false)]
    {
        let arguments = format!(r#"{{"agent":"painter","prompt":"paint","tools":{tools}}}"#);
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(&arguments)),
                ("Be brief", 1, &says("{{last_result}}")),
                ("I am painter", 0, &step("paint", "{}")),
                ("I am painter", 1, &says("{{last_result}}")),
            ]),
            Roster::default().with(agent("painter")),
        );
        let orchestrator = Arc::new(team.orchestrator());
        let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
        if borrowed {
            let child = requested(&orchestrator).await;
            assert_ne!(child, task_id);
            orchestrator.tool_result(&child, &call(), ToolResult::text("red")).await.expect("ok");
        }
        let state = orchestrator.wait(&task_id).await.expect("an end");
        let reported: Value = serde_json::from_str(&results(&state)[0].0).expect("JSON");
        let content = reported["result"]["content"].to_string();
        assert_eq!(content == "\"red\"", borrowed, "{tools}: {content}");
    }
}

/// A client's tool that has the name of ours. A child looks with ours, whatever tools its caller has.
#[tokio::test]
async fn a_clients_tool_that_has_replaced_ours_stays_with_its_task() {
    for tools in [None, Some(Vec::new())] {
        let arguments = r#"{"agent":"painter","prompt":"paint","tools":"inherit"}"#;
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(arguments)),
                ("Be brief", 1, &says("{{last_result}}")),
                ("I am painter", 0, &step("look", "{}")),
                ("I am painter", 1, &says("{{last_result}}")),
            ]),
            Roster::default().with(agent("painter")),
        );
        let orchestrator = team.orchestrator();
        let task = NewTask { tools, ..offering(&["look"]) };
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("an end");
        assert_eq!(state.status, TaskStatus::Completed);
        assert!(team.tools.done().contains_key("look {}"));
    }
}

#[tokio::test]
async fn a_task_that_keeps_its_clients_tools_lends_none() {
    let arguments = r#"{"agent":"painter","prompt":"paint","tools":"inherit"}"#;
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(arguments)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am painter", 0, &step("paint", "{}")),
            ("I am painter", 1, &says("{{last_result}}")),
        ]),
        Roster::default().with(agent("painter")),
    );
    let orchestrator = team.orchestrator();
    let task = NewTask { keeps_client_tools: true, ..offering(&["paint"]) };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert!(results(&state)[0].0.contains("there is no tool `paint`"), "{:?}", results(&state));
}

#[tokio::test]
async fn the_agent_that_takes_over_has_the_remaining_tools() {
    for (tools, left) in [(r#""inherit""#, true), (r#"["look"]"#, false), (r#""none""#, false)] {
        let over =
            format!(r#"{{"agent":"painter","prompt":"paint","tools":{tools},"context":"shared"}}"#);
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(&over)),
                ("I am painter", 1, &step("paint", "{}")),
                ("I am painter", 2, &says("{{last_result}}")),
            ]),
            Roster::default().with(agent("painter")),
        );
        let orchestrator = team.orchestrator();
        let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
        if left {
            assert_eq!(requested(&orchestrator).await, task_id);
            let call = ToolCallId::parse("call_1_0").expect("an id");
            orchestrator.tool_result(&task_id, &call, ToolResult::text("red")).await.expect("ok");
        }
        let state = orchestrator.wait(&task_id).await.expect("an end");
        let word = state.detail.expect("a result").to_string();
        assert_eq!(word == "\"red\"", left, "{tools}: {word}");
    }
}

#[tokio::test]
async fn what_cannot_be_offered_is_refused() {
    let team = asks();
    let orchestrator = team.orchestrator();
    for tools in [&["a", "a"] as &[_], &["call_agent"], &["final"], &["no spaces"], &[""]] {
        let refused = orchestrator.invoke(offering(tools)).await;
        assert!(matches!(refused, Err(OrchestratorError::BadTool { .. })), "{tools:?}");
    }
    assert!(team.tasks().await.is_empty());
}

#[tokio::test]
async fn a_client_that_takes_its_calls_with_it_ends_the_task_once() {
    let team = asks();
    let orchestrator = team.orchestrator();
    let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
    requested(&orchestrator).await;
    // There is a call of ours beside it, which comes to its end first.
    while orchestrator.conclude(&task_id).await.expect("a look") == Conclusion::StillRunning {
        tokio::task::yield_now().await;
    }
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let call = json!({ "id": "call_0_0", "name": "paint", "arguments": { "color": "red" } });
    let ended = (state.status, state.detail, state.agent_state);
    let result = Some(json!({ "tool_calls": [call] }));
    assert_eq!(ended, (TaskStatus::Completed, result, AgentState::Idle));
    assert_eq!(team.tools.done()["look {}"], 1);
    let again = orchestrator.conclude(&task_id).await;
    assert!(matches!(again, Err(OrchestratorError::Ended { .. })), "{again:?}");
}

#[tokio::test]
async fn a_task_that_waits_for_more_than_its_client_is_not_concluded() {
    let arguments = r#"{"agent":"painter","prompt":"paint"}"#;
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(arguments)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am painter", 0, &step("paint", "{}")),
            ("I am painter", 1, &says("{{last_result}}")),
        ]),
        Roster::default().with(agent("painter")),
    );
    let orchestrator = team.orchestrator();
    let task_id = orchestrator.invoke(offering(&["paint"])).await.expect("accepted").task_id;
    let child = requested(&orchestrator).await;
    let concluded = orchestrator.conclude(&task_id).await.expect("a look");
    assert_eq!(concluded, Conclusion::StillRunning);
    orchestrator.tool_result(&child, &call(), ToolResult::text("red")).await.expect("taken");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_task_without_tools_of_ours_may_be_offered_their_names() {
    let team = asks();
    let orchestrator = team.orchestrator();
    let bare = |names: &[&str]| NewTask {
        tools: Some(Vec::new()),
        agents: CallableAgents::Only(Vec::new()),
        ..offering(names)
    };
    let bare_task = bare(&["look", "paint", "call_agent"]);
    let task_id = orchestrator.invoke(bare_task).await.expect("accepted").task_id;
    requested(&orchestrator).await;
    while orchestrator.conclude(&task_id).await.expect("a look") == Conclusion::StillRunning {
        tokio::task::yield_now().await;
    }
    assert!(!team.tools.done().contains_key("look {}"), "it is the client's to run");
    let refused = orchestrator.invoke(bare(&["final"])).await;
    assert!(matches!(refused, Err(OrchestratorError::BadTool { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_task_with_it_unless_it_lets_it_go() {
    let team = asks();
    let orchestrator = team.orchestrator();
    let (accepted, attended) =
        orchestrator.invoke_attached(offering(&["paint"])).await.expect("accepted");
    let left = accepted.task_id;
    requested(&orchestrator).await;
    drop(attended);
    let mut follower = orchestrator.follow(Some(left.clone()), Position(0));
    while !follower.next().await.expect("an event").body.ends_task() {}
    let state = orchestrator.wait(&left).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Canceled);
    let (accepted, attended) =
        orchestrator.invoke_attached(offering(&["paint"])).await.expect("accepted");
    let kept = accepted.task_id;
    attended.detach();
    let mut follower = orchestrator.follow(Some(kept.clone()), Position(0));
    while !matches!(follower.next().await.expect("an event").body, EventBody::ToolRequested(_)) {}
    orchestrator.tool_result(&kept, &call(), ToolResult::text("red")).await.expect("taken");
    let state = orchestrator.wait(&kept).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
}
