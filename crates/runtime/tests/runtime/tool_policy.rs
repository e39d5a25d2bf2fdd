//! What a call of an agent may say, and which tools the called agent has.

use antiphon_core::AgentDefinition;
use antiphon_runtime::NewTask;
use serde_json::Value;

use crate::team::{Roster, Team, agent, calls, results, says, script};
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
async fn a_wrong_argument_is_named_with_its_value_and_what_is_allowed() {
    let cases = [
        (r#"{"agent":"a","prompt":"1","join":"some"}"#, "join", "`some`", "`detached`"),
        (r#"{"agent":"a","prompt":"1","context":"own"}"#, "context", "`own`", "`inherited`"),
        (r#"{"agent":"a","prompt":"1","tools":"some"}"#, "tools", "some", "`inherit`"),
        (r#"{"agent":"a","prompt":"1","tools":{"kind":"some"}}"#, "tools", "`some`", "`exact`"),
        (r#"{"agent":"a","prompt":"1","tools":7}"#, "tools", "7", "`none`"),
        (
            r#"{"agent":"a","prompt":"1","executor":{"kind":"some"}}"#,
            "executor",
            "`some`",
            "`force`",
        ),
        (
            r#"{"agent":"a","prompt":"1","executor":{"kind":"force","type":"some"}}"#,
            "executor",
            "`some`",
            "`remote`",
        ),
        (r#"{"agent":{"type":"some"},"prompt":"1"}"#, "agent", "`some`", "`ad_hoc`"),
        (
            r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"a","message":{"role":"tool","parts":["x"]}}]}"#,
            "targets[1]",
            "tool",
            "`user`",
        ),
    ];
    for (arguments, field, value, allowed) in cases {
        let team = Team::new(
            script(&[("Be brief", 0, &calls(arguments)), ("Be brief", 1, &says("so"))]),
            Roster::default().with(agent("a")),
        );
        let state = done(&team).await;
        assert_eq!(reported(&state)["error"], "invalid_arguments", "{arguments}");
        let message = reported(&state)["message"].as_str().expect("a text").to_owned();
        for part in [field, value, allowed] {
            assert!(message.contains(part), "{arguments}: {message} does not say {part}");
        }
        assert!(!message.contains("did not match"), "{message}");
    }
}

#[tokio::test]
async fn the_targets_of_the_contract_are_read() {
    let arguments = serde_json::json!({
        "targets": [
            {"agent": {"type": "named", "agent_id": "coder"},
             "message": {"role": "user", "parts": [{"part_type": "text", "data": "one"}]},
             "executor": {"kind": "force", "type": "local"}},
            {"agent": {"type": "ad_hoc", "system_prompt": "I am new.", "tools": ["look"]},
             "message": {"content": [{"type": "text", "text": "two"}]}, "tools": {"kind": "none"}},
            {"system_prompt": "I am bare.", "prompt": "three", "tools": ["look"]},
        ],
        "join": "all", "context": "independent",
        "executor": {"kind": "auto"}, "tools": {"kind": "inherit"},
    });
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&arguments.to_string())),
            ("Be brief", 1, &says("so")),
            ("I am coder", 0, &says("{{last_user}}")),
            ("I am new", 0, &says("{{last_user}}")),
            ("I am bare", 0, &says("{{last_user}}")),
        ]),
        Roster::default().with(agent("coder")),
    );
    let state = done(&team).await;
    let reported = reported(&state);
    let contents: Vec<&Value> =
        reported["results"].as_array().expect("results").iter().map(|r| &r["content"]).collect();
    assert_eq!(contents, ["one", "two", "three"], "{reported}");
    let mut tools = Vec::new();
    for result in reported["results"].as_array().expect("results") {
        let task_id = result["task_id"].as_str().expect("an id");
        let task_id = antiphon_core::TaskId::parse(task_id).expect("an id");
        tools.push(team.orchestrator().task(&task_id).await.expect("a task").created.tools);
    }
    let look = || Some(vec!["look".to_owned()]);
    assert_eq!(tools, [None, look(), look()]);
}

/// As in a request of a client.
#[tokio::test]
async fn a_tool_that_does_not_exist_is_refused_with_the_field_and_the_reason() {
    let arguments = r#"{"system_prompt":"I am new.","prompt":"do","tools":["look","saw"]}"#;
    let team = Team::new(
        script(&[("Be brief", 0, &calls(arguments)), ("Be brief", 1, &says("so"))]),
        Roster::default(),
    );
    let reported = reported(&done(&team).await);
    assert_eq!(reported["error"], "unknown_tool", "{reported}");
    let message = reported["message"].as_str().expect("a text");
    assert!(message.starts_with("`tools`: there is no tool `saw`; available: "), "{message}");
}

/// What the agent `coder` with these tools has, called by one with `look` only, and the result of the call.
async fn coders_tools(own: &[&str], policy: &str) -> (Vec<String>, Value) {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let coder = AgentDefinition { tools: names(own), ..agent("coder") };
    let asked = format!(r#"{{"agent":"coder","prompt":"do","tools":{policy}}}"#);
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&asked)),
            ("Be brief", 1, &says("so")),
            ("I am coder", 0, &crate::team::step("act", "{}")),
            ("I am coder", 1, &says("{{last_result}}")),
        ]),
        Roster::default().with(coder),
    );
    let orchestrator = team.orchestrator();
    let task = NewTask { tools: names(&["look"]), ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let child = team.tasks().await[1].task_id.clone();
    let tools = orchestrator.task(&child).await.expect("a task").created.tools;
    (tools.expect("a list"), reported(&state))
}

#[tokio::test]
async fn a_defined_agent_has_its_own_tools_whatever_its_caller_has_or_lends() {
    for policy in [r#""inherit""#, r#""none""#, r#"["look"]"#, r#"{"kind":"none"}"#] {
        let (tools, reported) = coders_tools(&["act", "saw"], policy).await;
        assert_eq!(tools, ["act", "saw"], "{policy}");
        assert_eq!(reported["result"]["content"], "did act {}", "{policy}: {reported}");
        let said = reported["left_out"].as_array().expect("what is left out");
        let said: Vec<&Value> = said.iter().map(|left| &left["tool"]).collect();
        let expected: &[&str] = if policy == r#"["look"]"# { &["saw", "look"] } else { &["saw"] };
        assert_eq!(said, expected, "{policy}: {reported}");
    }
    let (_, reported) = coders_tools(&["act"], r#""inherit""#).await;
    assert_eq!(reported.get("left_out"), None, "{reported}");
}

#[tokio::test]
async fn a_defined_agent_without_a_list_has_every_tool_whatever_its_caller_has_or_lends() {
    for policy in [r#""inherit""#, r#""none""#, r#"["look"]"#] {
        let asked = format!(r#"{{"agent":"coder","prompt":"do","tools":{policy}}}"#);
        let team = Team::new(
            script(&[
                ("Be brief", 0, &calls(&asked)),
                ("Be brief", 1, &says("so")),
                ("I am coder", 0, &crate::team::step("act", "{}")),
                ("I am coder", 1, &says("{{last_result}}")),
            ]),
            Roster::default().with(agent("coder")),
        );
        let orchestrator = team.orchestrator();
        let task = NewTask { tools: Some(vec!["look".to_owned()]), ..new_task("go") };
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("an end");
        let child = team.tasks().await[1].task_id.clone();
        let created = orchestrator.task(&child).await.expect("a task").created;
        assert_eq!(created.tools, None, "{policy}");
        let reported = reported(&state);
        assert_eq!(reported["result"]["content"], "did act {}", "{policy}: {reported}");
        assert_eq!(reported.get("left_out"), None, "{policy}: {reported}");
    }
}

#[tokio::test]
async fn tools_that_the_orchestrator_answers_are_not_left_out() {
    let own = ["act", "get_task", "peers", "send_message", "reply", "final", "todo"];
    let (_, reported) = coders_tools(&own, r#""inherit""#).await;
    assert_eq!(reported.get("left_out"), None, "{reported}");
}

#[tokio::test]
async fn an_ad_hoc_agent_has_at_most_the_tools_of_its_caller() {
    let asked = serde_json::json!({
        "targets": [
            {"agent": {"type": "ad_hoc", "system_prompt": "I am new.", "tools": ["look", "act"]}, "message": "do"},
            {"agent": {"type": "ad_hoc", "system_prompt": "I am new."}, "message": "do"},
        ],
    });
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&asked.to_string())),
            ("Be brief", 1, &says("so")),
            ("I am new", 0, &crate::team::step("act", "{}")),
            ("I am new", 1, &says("{{last_result}}")),
        ]),
        Roster::default(),
    );
    let orchestrator = team.orchestrator();
    let task = NewTask { tools: Some(vec!["look".to_owned()]), ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let reported = reported(&state);
    for result in reported["results"].as_array().expect("results") {
        let content = result["content"].as_str().expect("a text");
        assert!(content.contains("there is no tool `act`"), "{reported}");
    }
    assert_eq!(reported["left_out"][0]["tool"], "act", "{reported}");
    assert_eq!(team.tools.done().get("act {}"), None);
}

#[tokio::test]
async fn tools_to_reach_agents_are_offered_where_there_is_an_agent_to_reach() {
    for tool in ["peers", "send_message", "send_request", "get_task", "list_my_tasks"] {
        let answers = format!(
            "name = \"test\"\n[[reply]]\nwhen = {{ tool_offered = \"{tool}\" }}\n\
             step = [{{ text = \"offered\" }}]\n[[reply]]\nstep = [{{ text = \"absent\" }}]\n"
        );
        let alone = Roster::default();
        let team = Roster::default().with(agent("coder"));
        for (roster, expected) in [(alone, "absent"), (team, "offered")] {
            let team = Team::new(answers.clone(), roster);
            let orchestrator = team.orchestrator();
            let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
            let state = orchestrator.wait(&task_id).await.expect("an end");
            assert_eq!(state.detail, Some(Value::String(expected.to_owned())), "{tool}");
        }
    }
}
