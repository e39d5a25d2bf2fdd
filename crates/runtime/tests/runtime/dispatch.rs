//! Agents call agents.

use antiphon_core::{EventBody, RunnerConfig, Runtime, TaskStatus};
use serde_json::{Value, json};

use crate::team::{Roster, Team, agent, agent_in, calls, results, says, script};
use crate::world::new_task;

async fn done(team: &Team) -> antiphon_runtime::TaskState {
    let orchestrator = team.orchestrator();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end")
}

fn reported(state: &antiphon_runtime::TaskState) -> Value {
    serde_json::from_str(&results(state)[0].0).expect("JSON")
}

#[tokio::test]
async fn an_agent_calls_another_and_reads_what_it_delivers() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"scout","prompt":"look around"}"#)),
            ("Be brief", 1, &says("Heard: {{last_result}}")),
            ("I am scout", 0, &says("I saw: {{last_user}}")),
        ]),
        Roster::default().with(agent("scout")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let tasks = team.tasks().await;
    assert_eq!(tasks.len(), 2);
    let result = json!({"content": "I saw: look around", "task_id": tasks[1].task_id,
        "status": "completed"});
    assert_eq!(reported(&state), json!({"kind": "scalar", "result": result}));
    assert_eq!(tasks[1].parent.as_ref(), Some(&state.task_id));
    assert_eq!((&tasks[1].root, tasks[1].agent.as_str()), (&state.task_id, "scout"));
}

#[tokio::test]
async fn one_failure_loses_no_other_result() {
    let targets = r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"bad","prompt":"2"},
        {"system_prompt":"I am made up.","prompt":"3"}]}"#;
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(targets)),
            ("Be brief", 1, &says("done")),
            ("I am a.", 0, &says("one")),
            ("I am bad", 0, "{ error = { kind = \"permission\", message = \"no\" } }"),
            ("The base. I am made up.", 0, &says("three")),
        ]),
        Roster::default().with(agent("a")).with(agent("bad")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let reported = reported(&state);
    let statuses: Vec<&str> =
        (0..3).map(|i| reported["results"][i]["status"].as_str().expect("a status")).collect();
    assert_eq!(statuses, ["completed", "failed", "completed"]);
    assert_eq!(reported["results"][0]["content"], "one");
    assert_eq!(reported["results"][1]["content"]["code"], "permission");
    assert_eq!(reported["results"][2]["content"], "three");
    assert!(!results(&state)[0].1);
}

#[tokio::test]
async fn a_handover_ends_the_first_agents_part() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"heir","prompt":"carry on","context":"shared"}"#)),
            ("I am heir", 1, &says("I have seen {{turn}} answer and was told: {{last_user}}")),
        ]),
        Roster::default().with(agent("heir")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    assert_eq!(state.detail, Some(json!("I have seen 1 answer and was told: carry on")));
    assert_eq!(state.created.agent, "heir");
    let tasks = team.tasks().await;
    assert_eq!((tasks.len(), tasks[0].agent.as_str()), (1, "heir"));
    let events = team.events(&state.task_id).await;
    assert!(events.iter().any(|body| matches!(body, EventBody::HandedOver(_))));
}

#[tokio::test]
async fn a_detached_agent_reports_and_wakes_its_caller() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"scout","prompt":"far","join":"detached"}"#)),
            ("Be brief", 1, &says("I sent an agent.")),
            ("Be brief", 2, &says("It said: {{last_user}}")),
            ("I am scout", 0, &format!("{{ delay_ms = 50 }}, {}", says("nothing there"))),
        ]),
        Roster::default().with(agent("scout")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let child = team.tasks().await[1].task_id.clone();
    assert_eq!(reported(&state), json!({"kind": "task_ids", "task_ids": [child]}));
    let report = format!("[RESPONSE to {child} from scout: completed]");
    let word = state.detail.expect("a result").to_string();
    assert!(word.contains(&report) && word.contains("nothing there"), "{word}");
}

#[tokio::test]
async fn an_inherited_history_is_read_and_not_copied() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &crate::team::step("look", r#"{"at":"the door"}"#)),
            (
                "Be brief",
                1,
                &calls(r#"{"agent":"twin","prompt":"and you?","context":"inherited"}"#),
            ),
            ("Be brief", 2, &says("{{last_result}}")),
            ("I am twin", 2, &says("before me: {{last_result}}; now: {{last_user}}")),
        ]),
        Roster::default().with(agent("twin")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let reported: Value = serde_json::from_str(&results(&state)[1].0).expect("JSON");
    let expected = r#"before me: did look {"at":"the door"}; now: and you?"#;
    assert_eq!(reported["result"]["content"], expected);
    let child = team.tasks().await[1].clone();
    assert_eq!(child.messages, 2, "its own prompt and its answer");
}

#[tokio::test]
async fn the_first_success_is_enough_and_the_others_are_ended() {
    for (join, kind) in [(r#""any""#, "scalar"), (r#"{"quorum":{"n":1}}"#, "vector")] {
        let arguments = format!(
            r#"{{"join":{join},"targets":[{{"agent":"slow","prompt":"1"}},{{"agent":"bad","prompt":"2"}},{{"agent":"quick","prompt":"3"}}]}}"#
        );
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(&arguments)),
                ("Be brief", 1, &says("done")),
                ("I am slow", 0, "{ stall = true }"),
                ("I am bad", 0, "{ error = { kind = \"permission\", message = \"no\" } }"),
                ("I am quick", 0, &format!("{{ delay_ms = 30 }}, {}", says("me"))),
            ]),
            Roster::default().with(agent("slow")).with(agent("bad")).with(agent("quick")),
        );
        let state = done(&team).await;
        assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
        let reported = reported(&state);
        assert_eq!(reported["kind"], kind);
        let tasks = team.tasks().await;
        let slow = tasks.iter().find(|task| task.agent == "slow").expect("a task");
        assert_eq!(slow.status, TaskStatus::Canceled);
        if kind == "scalar" {
            assert_eq!(reported["result"]["content"], "me");
        } else {
            assert_eq!(reported["results"][2]["content"], "me");
            assert_eq!(reported["results"][0]["status"], "canceled");
        }
    }
}

#[tokio::test]
async fn a_task_may_run_elsewhere_and_call_others_from_there() {
    let force = r#"{"kind":"force","type":"remote","runner":{"kind":"elsewhere"}}"#;
    let arguments = format!(r#"{{"agent":"far","prompt":"work","executor":{force}}}"#);
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&arguments)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am far.", 0, &crate::team::step("act", "{}")),
            ("I am far.", 1, &calls(r#"{"agent":"farther","prompt":"help"}"#)),
            ("I am far.", 2, &says("with help: {{last_result}}")),
            ("I am farther", 0, &says("here")),
        ]),
        Roster::default().with(agent("far")).with(agent("farther")),
    );
    let state = done(&team).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let reported = reported(&state)["result"]["content"].to_string();
    assert!(reported.contains("with help") && reported.contains("here"), "{reported}");
    let tasks = team.tasks().await;
    assert_eq!(tasks.len(), 3);
    assert_eq!(team.tools.done()["act {}"], 1);
    // Who is shut in cannot send others out.
    let EventBody::TaskCreated(farther) = &team.events(&tasks[2].task_id).await[0] else {
        panic!("a task begins with its creation");
    };
    assert_eq!(farther.runner.as_ref().map(|runner| runner.kind.as_str()), Some("elsewhere"));
}

/// The kind of runner, `None` for this process; or why none can run it.
type Resolved = Result<Option<&'static str>, &'static str>;

#[tokio::test]
async fn where_an_agent_runs_is_found_out_or_refused_with_the_reason() {
    let runner = |kind: &str| Runtime::Runner(RunnerConfig::new(kind));
    let broken =
        Runtime::Runner(RunnerConfig::new("elsewhere").with_config(json!({"broken": true})));
    let local = r#", "executor":"local""#;
    let cases: [(Vec<Runtime>, &str, Resolved); 6] = [
        (vec![], "", Ok(None)),
        (vec![runner("k8s"), runner("elsewhere")], "", Ok(Some("elsewhere"))),
        (vec![broken.clone(), Runtime::Local], "", Ok(None)),
        (vec![runner("k8s")], "", Err("k8s: there is no such runner here, only local, elsewhere")),
        (vec![broken], "", Err("elsewhere: it is broken")),
        (
            vec![runner("elsewhere")],
            local,
            Err("it runs in elsewhere, but the call asks for local"),
        ),
    ];
    for (runtimes, executor, expected) in cases {
        let arguments = format!(r#"{{"agent":"a","prompt":"go"{executor}}}"#);
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(&arguments)),
                ("Be brief", 1, &says("{{last_result}}")),
                ("I am a", 0, &says("here")),
            ]),
            Roster::default().with(agent_in("a", runtimes)),
        );
        let state = done(&team).await;
        let reported = reported(&state);
        match expected {
            Ok(kind) => {
                let child = team.tasks().await[1].task_id.clone();
                let created = team.orchestrator().task(&child).await.expect("a task").created;
                assert_eq!(created.runner.as_ref().map(|runner| runner.kind.as_str()), kind);
                assert_eq!(reported["result"]["content"], "here");
            }
            Err(reason) => {
                assert_eq!(reported["error"], "no_executor");
                assert_eq!(reported["message"], format!("`a` cannot run: {reason}"));
            }
        }
    }
}

#[tokio::test]
async fn what_is_said_beside_the_targets_holds_for_each() {
    let both = r#"{"executor":"elsewhere","timeout_s":60,"targets":[{"agent":"a","prompt":"1"},
        {"agent":"a","prompt":"2","executor":"local","timeout_s":5}]}"#;
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(both)),
            ("Be brief", 1, &says("so")),
            ("I am a", 0, &says("here")),
        ]),
        Roster::default().with(agent("a")),
    );
    done(&team).await;
    let mut found = Vec::new();
    for task in &team.tasks().await[1..] {
        let created = team.orchestrator().task(&task.task_id).await.expect("a task").created;
        let seconds = created.limits.wall_clock_s_max.map(std::num::NonZeroU32::get);
        found.push((created.runner.map(|runner| runner.kind), seconds));
    }
    found.sort();
    assert_eq!(found, [(None, Some(5)), (Some("elsewhere".to_owned()), Some(60))]);
}

#[tokio::test]
async fn an_invocation_that_makes_no_sense_is_told_why() {
    let several = r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"a","prompt":"2"}]"#;
    let cases = [
        (r#"{"targets":[]}"#.to_owned(), "no_targets"),
        (format!(r#"{several},"join":"single"}}"#), "single_needs_one_target"),
        (format!(r#"{several},"join":{{"quorum":{{"n":3}}}}}}"#), "quorum_needs_targets"),
        (r#"{"system_prompt":" ","prompt":"1"}"#.to_owned(), "ad_hoc_empty_prompt"),
        (r#"{"agent":"","prompt":"1"}"#.to_owned(), "named_empty_agent_id"),
        (r#"{"agent":"nobody","prompt":"1"}"#.to_owned(), "unknown_agent"),
        (r#"{"agent":"a"}"#.to_owned(), "invalid_arguments"),
        (r#"{"prompt":"1"}"#.to_owned(), "invalid_arguments"),
        (r#"{"agent":"a","system_prompt":"b","prompt":"1"}"#.to_owned(), "invalid_arguments"),
        (r#"{"agent":"a","prompt":"1","targets":[]}"#.to_owned(), "invalid_arguments"),
        (r#"{"agent":"a","prompt":"1","color":"red"}"#.to_owned(), "invalid_arguments"),
        (r#"{"agent":"a","prompt":"1","join":"some"}"#.to_owned(), "invalid_arguments"),
        (r#"{"agent":"a","prompt":"1","tools":["saw"]}"#.to_owned(), "unknown_tool"),
        (r#"{"agent":"a","prompt":"1","output_schema":{"type":7}}"#.to_owned(), "bad_schema"),
    ];
    for (arguments, word) in cases {
        let team = Team::new(
            script(&[("Be brief", 0, &calls(&arguments)), ("Be brief", 1, &says("so"))]),
            Roster::default().with(agent("a")),
        );
        let state = done(&team).await;
        assert_eq!(reported(&state)["error"], word, "{arguments}");
        assert_eq!(team.tasks().await.len(), 1, "{arguments}");
    }
}

#[tokio::test]
async fn an_agent_cannot_take_over_a_task_on_a_runner_it_does_not_allow() {
    let over = calls(r#"{"agent":"heir","prompt":"1","context":"shared"}"#);
    let runtimes = vec![Runtime::Runner(RunnerConfig::new("elsewhere"))];
    let team = Team::new(
        script(&[("Be brief", 0, &over), ("Be brief", 1, &says("so"))]),
        Roster::default().with(agent_in("heir", runtimes)),
    );
    let state = done(&team).await;
    assert_eq!(reported(&state)["error"], "no_executor");
    let reason =
        "`heir` cannot run: it runs in elsewhere, but the task it takes over runs in local";
    assert_eq!(reported(&state)["message"], reason);
}

#[tokio::test]
async fn a_handover_beside_other_calls_is_refused_and_a_task_is_not_passed_on_forever() {
    let both = format!(
        "{}, {}",
        calls(r#"{"agent":"heir","prompt":"1","context":"shared"}"#),
        crate::team::step("look", "{}")
    );
    let team = Team::new(
        script(&[("Be brief", 0, &both), ("Be brief", 1, &says("so"))]),
        Roster::default().with(agent("heir")),
    );
    let state = done(&team).await;
    assert_eq!(reported(&state)["error"], "not_alone");
    let on = calls(r#"{"agent":"heir","prompt":"on","context":"shared"}"#);
    let last = crate::team::replying("last_result_is_error = true", &says("{{last_result}}"));
    let text = format!("name = \"team\"\n{last}{}", crate::team::otherwise(&on));
    let state = done(&Team::new(text, Roster::default().with(agent("heir")))).await;
    assert_eq!(state.handovers, antiphon_runtime::HANDOVERS_MAX);
    assert!(state.detail.expect("a result").to_string().contains("handed over 16 times"));
}
