//! Texts of other programs, read through the public interface: models, commands, variables and servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use antiphon_imports::{
    ARGUMENTS_BYTES_MAX, CommandError, PromptCommand, VariableError, built_in_model, codex_servers,
    expand, json_servers, split_arguments,
};
use serde_json::{Value, json};

#[test]
fn short_names_stand_for_current_models() {
    for name in ["sonnet", "opus", "Haiku"] {
        let model = built_in_model(name).unwrap().to_string();
        assert!(model.starts_with("anthropic/claude-"), "{model}");
    }
    let found = |name| built_in_model(name).map(|model| model.to_string());
    assert_eq!(found("claude-opus-4-1").as_deref(), Some("anthropic/claude-opus-4-1"));
    assert_eq!(found("local/qwen3").as_deref(), Some("local/qwen3"));
    assert_eq!(found("fable"), None);
}

fn expanded(body: &str, arguments: &[&str]) -> String {
    let command = PromptCommand::read(body.as_bytes()).unwrap();
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    command.expand(&arguments).unwrap()
}

#[test]
fn arguments_stand_in_their_places_and_are_not_read_again() {
    assert_eq!(expanded("Fix $ARGUMENTS now", &["a", "$1"]), "Fix a $1 now");
    assert_eq!(
        expanded("$2 before $1; $3, $10, $HOME, $", &["a", "b"]),
        "b before a; , $10, $HOME, $"
    );
    assert_eq!(expanded("Explain.", &["this", "file"]), "Explain.\n\nArguments: this file");
    assert_eq!(expanded("Explain @src/main.rs.", &[]), "Explain @src/main.rs.");
}

#[test]
fn a_command_of_a_shell_stays_text() {
    let text = expanded("State: !`git status`", &[]);
    assert!(text.starts_with("State: !`git status`\n\n(The commands between"), "{text}");
}

#[test]
fn a_hint_in_brackets_is_a_text_and_tools_are_not_allowed() {
    let command = "---\ndescription: Fixes.\nargument-hint: [issue] [priority]\nallowed-tools: Bash(rm:*)\n---\nFix.";
    let command = PromptCommand::read(command.as_bytes()).unwrap();
    assert_eq!(command.hint.as_deref(), Some("[issue] [priority]"));
    assert_eq!(command.dropped.len(), 1);
    let command = PromptCommand::read(b"---\nargument-hint: [issue]\n---\nFix.").unwrap();
    assert_eq!((command.hint.as_deref(), command.dropped.len()), (Some("[issue]"), 0));
}

#[test]
fn what_is_in_quotes_is_one_argument() {
    let split = |typed| split_arguments(typed).join("|");
    assert_eq!(split(r#"a  "b c" 'd"e' it's"#), r#"a|b c|d"e|it's"#);
    assert_eq!(split(""), "");
}

#[test]
fn a_prompt_is_bounded() {
    let many = "$ARGUMENTS ".repeat(200);
    let command = PromptCommand::read(many.as_bytes()).unwrap();
    let long = vec!["x".repeat(ARGUMENTS_BYTES_MAX)];
    assert_eq!(command.expand(&long), Err(CommandError::TooLong));
    let longer = vec!["x".repeat(ARGUMENTS_BYTES_MAX + 1)];
    assert!(matches!(command.expand(&longer), Err(CommandError::Arguments { .. })));
}

#[test]
fn a_variable_is_given_away_only_if_it_is_allowed() {
    let value = |name: &str| match name {
        "OK" => Ok(Some("${SECRET}".to_owned())),
        "UNSET" => Ok(None),
        other => Err(VariableError::NotAllowed { name: other.to_owned() }),
    };
    assert_eq!(expand("a ${OK} b", value), Ok("a ${SECRET} b".to_owned()));
    assert_eq!(expand("${SECRET:-none}/${UNSET:-x}", value), Ok("none/x".to_owned()));
    assert_eq!(expand("${open", value), Ok("${open".to_owned()));
    let refused = expand("${SECRET}", value).unwrap_err();
    assert!(refused.to_string().contains("`mcp_json_env`"), "{refused}");
}

#[test]
fn servers_are_translated_and_other_transports_are_refused_by_name() {
    let found = json_servers(
        r#"{"mcpServers": {
            "a": {"command": "npx", "args": ["x"], "env": {"K": "v"}, "autoApprove": ["*"]},
            "b": {"type": "http", "url": "https://b.example/mcp", "headers": {"x": "y"}},
            "c": {"type": "sse", "url": "https://c.example/sse"},
            "d": {"command": "x", "disabled": true},
            "e": 1
        }}"#,
    )
    .unwrap();
    let table = |index: usize| found[index].table.clone().map(Value::Object);
    assert_eq!(table(0), Ok(json!({"command": "npx", "args": ["x"], "env": {"K": "v"}})));
    assert_eq!(found[0].dropped, ["`autoApprove`: calls are asked about as usual"]);
    assert_eq!(table(1), Ok(json!({"url": "https://b.example/mcp", "headers": {"x": "y"}})));
    assert!(table(2).unwrap_err().contains("`sse`"));
    assert_eq!(table(3), Err("it is disabled".to_owned()));
    assert_eq!(table(4), Err("it is no object".to_owned()));
    assert!(json_servers("{").is_err());
}

#[test]
fn codex_servers_are_translated() {
    let text = "model = 'x'\n[mcp_servers.docs]\ncommand = 'docs'\nstartup_timeout_sec = 5\nenabled_tools = ['a']\n";
    let found = codex_servers(text).unwrap();
    let expected = json!({"command": "docs", "start_timeout_s": 5, "allow": ["a"]});
    assert_eq!(found[0].table.clone().map(Value::Object), Ok(expected));
}
