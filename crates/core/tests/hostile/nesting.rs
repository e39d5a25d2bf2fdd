//! JSON nested so deep that a parser which follows it falls off the stack.

use antiphon_core::{
    DEPTH_MAX, Event, Interaction, Invocation, Message, OrchestratorRequest, RawJson, RawJsonError,
    Request, ToolArguments,
};

use crate::{TIME, answer, event, interaction, question, refusal, refused_by_all};

/// Ten megabytes.
const BYTES: usize = 10 * 1024 * 1024;

/// Closed arrays, five million deep.
fn arrays() -> String {
    "[".repeat(BYTES / 2) + &"]".repeat(BYTES / 2)
}

/// Closed objects, nearly a million deep.
fn objects() -> String {
    let depth = BYTES / 11;
    r#"{"action":"#.repeat(depth) + "0" + &"}".repeat(depth)
}

const TOO_DEEP: &str = "JSON is nested deeper than";
const RECURSION: &str = "recursion limit exceeded";

#[test]
fn no_parser_follows_nesting_off_the_stack() {
    for hostile in [arrays(), objects(), "[".repeat(BYTES), r#"[{"a":"#.repeat(BYTES / 6)] {
        refused_by_all(hostile.as_bytes());
    }
}

#[test]
fn raw_json_counts_without_recursion() {
    for hostile in [arrays(), objects()] {
        assert_eq!(RawJson::parse(&hostile), Err(RawJsonError::TooDeep));
        assert!(refusal::<RawJson>(&hostile).starts_with(TOO_DEEP));
    }
    let open = RawJson::parse(&"[".repeat(BYTES));
    assert!(matches!(open, Err(RawJsonError::Syntax { .. })));
}

#[test]
fn arguments_that_a_model_nests_without_end_are_malformed() {
    for hostile in [arrays(), objects(), "{\"a\":".repeat(BYTES / 5)] {
        let arguments = ToolArguments::from_model(hostile.clone());
        assert!(arguments == ToolArguments::Malformed(hostile));
    }
}

#[test]
fn nesting_inside_raw_json_is_refused_with_the_limit() {
    let deep = objects();
    let call = format!(r#"{{"type":"tool_call","id":"c","name":"t","arguments":{deep}}}"#);
    let sealed =
        format!(r#"{{"type":"thinking","thinking":"","opaque":{{"kind":"x","value":{deep}}}}}"#);
    for block in [call, sealed] {
        let message = answer(&block);
        assert!(refusal::<Message>(&message).starts_with(TOO_DEEP));
        let appended = event("message_appended", &format!(r#"{{"message":{message}}}"#));
        let said = refusal::<Event>(&appended);
        assert!(said.starts_with("malformed `message_appended` event: "), "{said}");
        assert!(said.contains(TOO_DEEP), "{said}");
    }
    let tool = format!(
        r#"{{"model":"","messages":[],"tools":[{{"name":"t","description":"","parameters":{deep}}}]}}"#
    );
    assert!(refusal::<Request>(&tool).starts_with(TOO_DEEP));
}

#[test]
fn nesting_inside_a_value_is_refused_with_the_limit() {
    for deep in [arrays(), objects()] {
        let request = format!(r#"{{"type":"request","intent":"x","params":{deep}}}"#);
        assert!(refusal::<Interaction>(interaction(&request)).starts_with(RECURSION));
        let response = format!(
            r#"{{"type":"response","in_reply_to":"{}","status":"failed","result":{deep}}}"#,
            crate::UUID
        );
        assert!(refusal::<Interaction>(interaction(&response)).starts_with(RECURSION));
        let runner = format!(
            r#"{{"targets":[],"executor":{{"kind":"force","type":"remote","runner":{{"kind":"k","config":{deep}}}}}}}"#
        );
        assert!(refusal::<Invocation>(&runner).starts_with(RECURSION));
        let detail = format!(r#"{{"status":"failed","detail":{deep}}}"#);
        assert!(refusal::<Event>(event("status_changed", &detail)).contains(RECURSION));
    }
}

#[test]
fn nesting_in_a_field_that_is_ignored_is_ignored() {
    for deep in [arrays(), objects()] {
        let message = question(&format!(r#"{{"type":"text","text":"hi","x":{deep}}}"#));
        assert!(serde_json::from_str::<Message>(&message).is_ok());
        let control = format!(r#"{{"action":"stop_agent","x":{deep},"name":"a"}}"#);
        assert!(serde_json::from_str::<OrchestratorRequest>(&control).is_ok());
        let moved =
            format!(r#"{{"agent_id":"{}","from":"idle","to":"idle","x":{deep}}}"#, crate::UUID);
        assert!(serde_json::from_str::<Event>(&event("state_changed", &moved)).is_ok());
    }
}

#[test]
fn nesting_where_text_should_be_is_refused_at_its_first_bracket() {
    for deep in [arrays(), objects()] {
        for block in [
            format!(r#"{{"type":"text","text":{deep}}}"#),
            format!(r#"{{"type":{deep}}}"#),
            deep.clone(),
        ] {
            refusal::<Message>(question(&block));
        }
        let message = format!(
            r#"{{"targets":[{{"agent":{{"type":"named","agent_id":"a"}},"message":{deep}}}]}}"#
        );
        refusal::<Invocation>(&message);
        let time = format!(r#"{{"type":"user","content":[],"timestamp":{deep}}}"#);
        refusal::<Message>(&time);
        let unknown = event("task_paused", &deep);
        assert!(refusal::<Event>(&unknown).starts_with("unknown event type `task_paused`"));
    }
}

#[test]
fn the_deepest_nesting_that_is_allowed_is_read_everywhere() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(DEPTH_MAX - 1), "]".repeat(DEPTH_MAX - 1));
    let call = format!(r#"{{"type":"tool_call","id":"c","name":"t","arguments":{deep}}}"#);
    let message: Message = serde_json::from_str(&answer(&call)).unwrap();
    assert_eq!(message.timestamp().to_rfc3339_opts(chrono::SecondsFormat::Secs, true), TIME);
    let appended = event("message_appended", &format!(r#"{{"message":{}}}"#, answer(&call)));
    let event: Event = serde_json::from_str(&appended).unwrap();
    assert_eq!(
        serde_json::from_str::<Event>(&serde_json::to_string(&event).unwrap()).unwrap(),
        event
    );
}
