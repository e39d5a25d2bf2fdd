//! What rules alone say about a call: no mode and no wildcard allows it.

use antiphon_core::RawJson;
use antiphon_core::port::{Gate as _, GateRequest, GateVerdict, Rule};
use antiphon_permissions::Gate;

use crate::world::{gate, open_gate};

const CALL: &str = r#"{"delivery": "agent:worker to shell", "text": "hi"}"#;

fn judged(gate: &Gate, granted: &[&str]) -> Option<GateVerdict> {
    let arguments = RawJson::parse(CALL).unwrap();
    let granted: Vec<Rule> = granted.iter().map(|rule| Rule((*rule).to_owned())).collect();
    let tool = "terminal_input";
    gate.judge_by_rules(&GateRequest { tool, arguments: &arguments, granted: &granted })
}

#[test]
fn no_mode_and_no_wildcard_allows_it() {
    for mode in ["read-only", "workspace", "full"] {
        for allow in ["*", "terminal_*", "bash", "terminal_input(delivery=agent:other to shell)"] {
            let config = format!("mode = \"{mode}\"\nallow = [\"{allow}\"]");
            assert_eq!(judged(&open_gate(&config), &[]), None, "{config}");
        }
    }
}

#[test]
fn a_rule_that_names_it_allows_it() {
    for rule in [
        "terminal_input",
        "terminal_input(delivery=agent:worker to shell)",
        "terminal_input(delivery=agent:* to shell)",
    ] {
        let config = format!("mode = \"read-only\"\nallow = [\"{rule}\"]");
        assert_eq!(judged(&gate(&config), &[]), Some(GateVerdict::Allow), "{config}");
        assert_eq!(judged(&gate(""), &[rule]), Some(GateVerdict::Allow), "granted: {rule}");
    }
    assert_eq!(judged(&gate(""), &["*"]), None);
}

#[test]
fn a_rule_that_asks_or_denies_is_stronger() {
    let asks = "allow = [\"terminal_input\"]\nask = [\"terminal_input(delivery=agent:*)\"]";
    assert_eq!(judged(&gate(asks), &[]), None);
    for deny in ["*", "terminal_input", "terminal_input(delivery=agent:*)"] {
        let config = format!("allow = [\"terminal_input\"]\ndeny = [\"{deny}\"]");
        let verdict = judged(&gate(&config), &["terminal_input"]);
        assert!(matches!(verdict, Some(GateVerdict::Deny { .. })), "{config}: {verdict:?}");
    }
}
