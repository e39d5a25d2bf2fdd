//! Tools that are neither bash nor for files, and calls that make no sense.

use antiphon_core::port::GateVerdict;
use antiphon_permissions::Decision::{Allow, Ask, Deny};

use crate::world::{explain, file, gate, judge};

#[test]
fn what_holds_without_rules_follows_from_the_mode_and_the_effect() {
    let cases = [
        // (tool, read-only, workspace, full)
        ("read_result", Allow, Allow, Allow),
        ("bash_output", Allow, Allow, Allow),
        ("bash_kill", Deny, Allow, Allow),
        ("call_agent", Deny, Allow, Allow),
        ("mcp__github__push", Deny, Ask, Allow),
        // What a server says of itself is not believed.
        ("mcp__github__get", Deny, Ask, Allow),
        ("unheard_of", Deny, Ask, Allow),
        ("", Deny, Ask, Allow),
    ];
    for (tool, read_only, workspace, full) in cases {
        for (mode, expected) in [("read-only", read_only), ("workspace", workspace), ("full", full)]
        {
            let gate = gate(&format!("mode = \"{mode}\""));
            assert_eq!(explain(&gate, tool, "{}", &[]).decision(), expected, "{tool} in {mode}");
        }
    }
}

#[test]
fn rules_name_tools_with_stars_and_arguments_with_values() {
    let gate = gate(
        r#"allow = ["mcp__github__*", "mcp__files__get(path=docs/*)"]
        ask = ["mcp__github__merge", "mcp__github__push(branch=main)"]
        deny = ["mcp__github__delete*", "mcp__github__push(repo=acme/*)", "*(path=/etc/*)"]"#,
    );
    let cases = [
        (Allow, "mcp__github__list", "{}"),
        (Ask, "mcp__gitlab__list", "{}"),
        (Deny, "mcp__github__delete", "{}"),
        (Deny, "mcp__github__delete_repo", "{}"),
        (Ask, "mcp__github__merge", "{}"),
        (Allow, "mcp__github__push", r#"{"repo":"me/x"}"#),
        (Deny, "mcp__github__push", r#"{"repo":"acme/x"}"#),
        (Deny, "mcp__github__push", r#"{"repo":"acme/"}"#),
        (Allow, "mcp__github__push", r#"{"repo":"acme"}"#),
        (Ask, "mcp__github__push", r#"{"branch":"main"}"#),
        // What a tool would make of these is not known.
        (Ask, "mcp__github__push", r#"{"repo":["acme/x"]}"#),
        (Ask, "mcp__github__push", r#"{"repo":"me/x","repo":"acme/x"}"#),
        (Ask, "mcp__github__push", r#"["repo","acme/x"]"#),
        (Allow, "mcp__github__push", "{}"),
        (Allow, "mcp__files__get", r#"{"path":"docs/a"}"#),
        (Ask, "mcp__files__get", r#"{"path":"src/a"}"#),
        (Ask, "mcp__files__get", r#"{"path":"docs/a","path":"docs/b"}"#),
        (Deny, "mcp__files__get", r#"{"path":"/etc/x"}"#),
        (Deny, "read", r#"{"path":"/etc/x"}"#),
    ];
    for (expected, tool, arguments) in cases {
        let explanation = explain(&gate, tool, arguments, &[]);
        assert_eq!(explanation.decision(), expected, "{tool} {arguments}: {explanation}");
    }
}

#[test]
fn calls_of_known_tools_that_make_no_sense_are_denied_in_every_mode() {
    let cases = [
        ("bash", "{}"),
        ("bash", "[]"),
        ("bash", "null"),
        ("bash", r#"{"command":1}"#),
        ("bash", r#"{"command":["ls"]}"#),
        ("bash", r#"{"command":null}"#),
        ("bash", r#"{"command":"ls","command":"rm x"}"#),
        ("bash", r#"{"comand":"ls"}"#),
        ("bash", r#"{"command":"ls","workdir":1}"#),
        ("read", "{}"),
        ("write", r#"{"path":1}"#),
        ("write", r#"{"path":"a","path":".git/config"}"#),
        ("edit", r#""path""#),
        ("read", r#"{"path":"a\u0000b"}"#),
        ("grep", r#"{"path":{}}"#),
        ("glob", r#"{"pattern":1}"#),
    ];
    for mode in ["workspace", "full", "read-only"] {
        let gate = gate(&format!("mode = \"{mode}\"\nallow = [\"*\"]"));
        for (tool, arguments) in cases {
            match judge(&gate, tool, arguments, &["*"]) {
                GateVerdict::Deny { reason } => {
                    assert!(reason.contains("the arguments cannot be read"), "{reason}");
                }
                other @ (GateVerdict::Allow | GateVerdict::Ask { .. }) => {
                    panic!("{tool} {arguments}: {other:?}")
                }
            }
        }
    }
}

#[test]
fn a_folder_to_search_need_not_be_given_and_a_pattern_may_lead_out() {
    let gate = gate("deny = [\"glob(secret/**)\"]");
    let cases = [
        (Allow, "grep", r#"{"pattern":"x"}"#),
        (Allow, "glob", r#"{"pattern":"**/*.rs"}"#),
        (Ask, "glob", r#"{"pattern":"/etc/*"}"#),
        (Ask, "glob", r#"{"pattern":"../*"}"#),
        (Deny, "glob", r#"{"pattern":"../secret/*","path":"src"}"#),
        (Deny, "glob", r#"{"pattern":"*","path":"secret/x"}"#),
        (Ask, "grep", r#"{"pattern":"x","path":"/etc"}"#),
    ];
    for (expected, tool, arguments) in cases {
        assert_eq!(explain(&gate, tool, arguments, &[]).decision(), expected, "{tool} {arguments}");
    }
}

#[test]
fn a_hidden_file_is_denied_and_no_rule_allows_it() {
    let gate = gate("allow = ['read(/home/me/**)', 'write(/home/me/**)']");
    for path in ["/home/me/.aws", "/home/me/.aws/credentials", "../.aws/x", "/home/me/./.aws//x"] {
        assert_eq!(file(&gate, "read", path), Deny, "{path}");
        assert_eq!(file(&gate, "write", path), Deny, "{path}");
        assert_eq!(file(&gate, "grep", path), Deny, "{path}");
    }
    assert_eq!(file(&gate, "read", "/home/me/.awsx"), Allow);
    let full = crate::world::open_gate("mode = 'full'");
    assert_eq!(file(&full, "read", "/home/me/.aws/credentials"), Allow);
}
