//! Control requests and the commands they turn into.

use antiphon_core::{Command, CommandError, OrchestratorRequest};
use serde_json::json;

use crate::{both_ways, read, refusal};

/// What the request in `json` means.
#[track_caller]
fn meaning(json: &str) -> Result<Command, CommandError> {
    read::<OrchestratorRequest>(json).validate()
}

fn missing<T>(action: &str, field: &str) -> Result<T, CommandError> {
    Err(CommandError::MissingField { action: action.to_owned(), field: field.to_owned() })
}

fn spawn(name: &str, profile: &str, context: Option<&str>) -> Command {
    Command::SpawnAgent {
        name: name.to_owned(),
        profile: profile.to_owned(),
        context: context.map(str::to_owned),
    }
}

fn stop(name: &str) -> Command {
    Command::StopAgent { name: name.to_owned() }
}

fn update(name: &str, context: &str) -> Command {
    Command::UpdateAgentContext { name: name.to_owned(), context: context.to_owned() }
}

#[test]
fn a_control_request_has_the_documented_json() {
    both_ways(
        &OrchestratorRequest {
            action: "spawn_agent".to_owned(),
            name: Some("dev-backend".to_owned()),
            profile: Some("claude-code".to_owned()),
            context: Some("agents/dev-backend.md".to_owned()),
        },
        &json!({
            "action": "spawn_agent",
            "name": "dev-backend",
            "profile": "claude-code",
            "context": "agents/dev-backend.md"
        }),
    );
    both_ways(
        &OrchestratorRequest {
            action: "stop_agent".to_owned(),
            name: None,
            profile: None,
            context: None,
        },
        &json!({"action": "stop_agent"}),
    );
}

#[test]
fn each_documented_request_means_its_command() {
    let table = [
        (
            r#"{ "action": "spawn_agent", "name": "dev-backend", "profile": "claude-code",
                 "context": "agents/dev-backend.md" }"#,
            spawn("dev-backend", "claude-code", Some("agents/dev-backend.md")),
        ),
        (
            r#"{ "action": "spawn_agent", "name": "a", "profile": "claude-code" }"#,
            spawn("a", "claude-code", None),
        ),
        (r#"{ "action": "stop_agent", "name": "dev-backend" }"#, stop("dev-backend")),
        (
            r##"{ "action": "update_agent_context", "name": "a", "context": "# new body" }"##,
            update("a", "# new body"),
        ),
    ];
    for (json, command) in table {
        assert_eq!(meaning(json), Ok(command), "{json}");
    }
}

#[test]
fn a_field_an_action_needs_is_missed_by_name_in_the_order_of_the_table() {
    let table = [
        (r#"{"action":"spawn_agent"}"#, "spawn_agent", "name"),
        (r#"{"action":"spawn_agent","profile":"p"}"#, "spawn_agent", "name"),
        (r#"{"action":"spawn_agent","name":"a"}"#, "spawn_agent", "profile"),
        (r#"{"action":"spawn_agent","name":"a","profile":" "}"#, "spawn_agent", "profile"),
        (r#"{"action":"stop_agent"}"#, "stop_agent", "name"),
        (r#"{"action":"stop_agent","name":"   "}"#, "stop_agent", "name"),
        (r#"{"action":"stop_agent","name":null}"#, "stop_agent", "name"),
        (r#"{"action":"update_agent_context"}"#, "update_agent_context", "name"),
        (r#"{"action":"update_agent_context","context":"x"}"#, "update_agent_context", "name"),
        (r#"{"action":"update_agent_context","name":"a"}"#, "update_agent_context", "context"),
        (
            r#"{"action":"update_agent_context","name":"a","context":"\n \t"}"#,
            "update_agent_context",
            "context",
        ),
    ];
    for (json, action, field) in table {
        assert_eq!(meaning(json), missing(action, field), "{json}");
    }
}

#[test]
fn values_are_trimmed_and_blank_is_missing() {
    let table = [
        (
            r#"{"action":" spawn_agent\n","name":" a ","profile":"\tp ","context":" c\n"}"#,
            spawn("a", "p", Some("c")),
        ),
        (
            r#"{"action":"spawn_agent","name":"a","profile":"p","context":"  "}"#,
            spawn("a", "p", None),
        ),
        (
            r#"{"action":"spawn_agent","name":"a","profile":"p","context":""}"#,
            spawn("a", "p", None),
        ),
        (r#"{"action":"stop_agent ","name":"\u3000a"}"#, stop("a")),
        (
            r#"{"action":"update_agent_context","name":" a","context":"\n# b\n\nc\n"}"#,
            update("a", "# b\n\nc"),
        ),
    ];
    for (json, command) in table {
        assert_eq!(meaning(json), Ok(command), "{json}");
    }
}

#[test]
fn a_missing_field_in_a_padded_action_is_reported_under_the_trimmed_action() {
    assert_eq!(meaning(r#"{"action":"  stop_agent  "}"#), missing("stop_agent", "name"));
}

#[test]
fn any_other_action_is_unknown() {
    for (json, action) in [
        (r#"{"action":"delete_everything","name":"a"}"#, "delete_everything"),
        (r#"{"action":"Spawn_Agent","name":"a"}"#, "Spawn_Agent"),
        (r#"{"action":"spawnAgent"}"#, "spawnAgent"),
        (r#"{"action":"  "}"#, ""),
        (r"{}", ""),
        (r#"{"action":5,"name":"a"}"#, "5"),
        (r#"{"action":"delete_everything","name":7,"context":[]}"#, "delete_everything"),
    ] {
        assert_eq!(meaning(json), Err(CommandError::UnknownAction(action.to_owned())));
    }
}

#[test]
fn the_refusals_read_as_the_contract_spells_them() {
    let said = |json: &str| meaning(json).unwrap_err().to_string();
    assert_eq!(
        said(r#"{"action":"spawn_agent","name":"a"}"#),
        "missing required field `profile` for action `spawn_agent`"
    );
    assert_eq!(
        said(r#"{"action":"spawn_agent","profile":"p"}"#),
        "missing required field `name` for action `spawn_agent`"
    );
    assert_eq!(
        said(r#"{"action":"stop_agent"}"#),
        "missing required field `name` for action `stop_agent`"
    );
    assert_eq!(
        said(r#"{"action":"update_agent_context","name":"a"}"#),
        "missing required field `context` for action `update_agent_context`"
    );
    assert_eq!(
        said(r#"{"action":"delete_everything","name":"a"}"#),
        "unknown orchestrator action: delete_everything"
    );
}

#[test]
fn fields_an_action_does_not_need_and_unknown_fields_are_ignored() {
    assert_eq!(
        meaning(
            r#"{"action":"stop_agent","name":"a","profile":"p","context":"c",
                "requestedBy":{"id":7},"priority":[1]}"#
        ),
        Ok(stop("a"))
    );
}

#[test]
fn a_field_that_is_no_text_is_refused() {
    assert_eq!(
        refusal::<OrchestratorRequest>(json!({"action": "stop_agent", "name": 7})),
        "`name`: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        refusal::<OrchestratorRequest>(json!(["stop_agent", "a", {}])),
        "invalid type: sequence, expected a control request: a JSON object"
    );
}

#[test]
fn a_null_action_is_an_unknown_action() {
    assert_eq!(
        meaning(r#"{"action":null,"name":"a"}"#),
        Err(CommandError::UnknownAction(String::new()))
    );
}
