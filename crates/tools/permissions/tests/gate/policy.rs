//! A policy of the machine holds against everything a user can say.

use antiphon_core::RawJson;
use antiphon_core::port::{Gate as _, GateRequest, GateVerdict, Rule};
use antiphon_hosts::{Access, HostPort};
use antiphon_permissions::{Decision, Gate, PolicyRules, Remembered};
use serde_json::json;

use crate::world::{explain, file, gate, granted_script, judge, open_gate, script};

/// A user who allows everything.
const EVERYTHING: &str = r#"
mode = "full"
allow = ["*", "bash", "unsandboxed", "network", "mcp__x__y", "write", "edit", "read"]
"#;

fn policy(text: &str) -> PolicyRules {
    toml::from_str(text).unwrap()
}

fn limited(user: &str, rules: &str) -> Gate {
    gate(user).within(&policy(rules)).unwrap()
}

fn without_sandbox(gate: &Gate, command: &str) -> Decision {
    let arguments = json!({ "command": command, "without_sandbox": true }).to_string();
    explain(gate, "bash", &arguments, &["unsandboxed", &format!("unsandboxed(={command})")])
        .decision()
}

#[test]
fn what_it_denies_no_mode_rule_or_grant_allows() {
    let rules = r#"deny = ["bash(curl *)", "write(secret/**)", "mcp__x__*", "read(/etc/shadow)"]"#;
    for user in ["", EVERYTHING] {
        let gate = limited(user, rules);
        assert_eq!(script(&gate, "curl example.com"), Decision::Deny);
        for grant in ["bash", "bash(curl *)", "bash(=curl example.com)", "*"] {
            assert_eq!(
                granted_script(&gate, "curl example.com", &[grant]),
                Decision::Deny,
                "{grant}"
            );
        }
        assert_eq!(script(&gate, "true && sudo curl x"), Decision::Deny);
        assert_eq!(script(&gate, "echo x > secret/a"), Decision::Deny);
        assert_eq!(file(&gate, "write", "secret/a"), Decision::Deny);
        assert_eq!(file(&gate, "read", "/etc/shadow"), Decision::Deny);
        let tool = explain(&gate, "mcp__x__y", "{}", &["mcp__x__y"]);
        assert_eq!(tool.decision(), Decision::Deny);
    }
}

#[test]
fn what_it_asks_is_asked_each_time() {
    let gate = limited(EVERYTHING, r#"ask = ["bash(git push *)", "mcp__x__y", "write(a.txt)"]"#);
    for grant in ["bash", "bash(git push *)", "bash(=git push origin)", "bash(git push origin)"] {
        assert_eq!(granted_script(&gate, "git push origin", &[grant]), Decision::Ask, "{grant}");
    }
    let tool = explain(&gate, "mcp__x__y", "{}", &["mcp__x__y"]);
    assert_eq!(tool.decision(), Decision::Ask);
    let write = explain(&gate, "write", r#"{"path":"a.txt"}"#, &["write(a.txt)"]);
    assert_eq!(write.decision(), Decision::Ask);
    let GateVerdict::Ask { reason, rule } = judge(&gate, "mcp__x__y", "{}", &[]) else {
        panic!("it asks")
    };
    assert_eq!(rule, Rule(String::new()), "no rule can be allowed for good");
    assert!(reason.contains("asked again"), "{reason}");
}

#[test]
fn a_command_that_may_be_denied_is_asked_although_a_user_allowed_it() {
    let gate = limited(EVERYTHING, r#"deny = ["bash(curl *)"]"#);
    for text in ["$TOOL example.com", "eval \"$X\""] {
        let granted = format!("bash(={text})");
        assert_eq!(granted_script(&gate, text, &["bash", &granted]), Decision::Ask, "{text}");
    }
    assert_eq!(script(&gate, "ls"), Decision::Allow);
}

#[tokio::test]
async fn what_is_remembered_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("permissions.toml");
    let remembered = Remembered::open(&file, std::path::Path::new(crate::world::ROOT)).unwrap();
    let gate = limited("", r#"ask = ["bash(git push *)"]"#).remembering(remembered);
    gate.remember(&Rule("bash(git push *)".to_owned())).await.unwrap();
    assert_eq!(script(&gate, "git push origin"), Decision::Ask);
    let refused = gate.remember(&Rule(String::new())).await.unwrap_err();
    assert!(refused.contains("allow it once"), "{refused}");
}

#[test]
fn nothing_leaves_the_sandbox_that_may_not() {
    // A script that only redirects has no program that a rule could name.
    let scripts = ["make", "> /home/me/.bashrc", "f() { make; }; f", "{ :; } > x", ""];
    for user in ["", "allow = [\"unsandboxed\", \"*\", \"bash\"]"] {
        let gate = limited(user, "deny = [\"unsandboxed\"]");
        for text in scripts {
            assert_eq!(without_sandbox(&gate, text), Decision::Deny, "{user}: {text}");
        }
        assert_eq!(script(&gate, "make"), Decision::Allow);
    }
    let own = gate("deny = [\"unsandboxed\"]");
    for text in scripts {
        assert_eq!(without_sandbox(&own, text), Decision::Deny, "a user's own rule: {text}");
    }
    let some = limited(EVERYTHING, "deny = [\"unsandboxed(rm *)\"]\nask = [\"unsandboxed(make)\"]");
    assert_eq!(without_sandbox(&some, "rm x"), Decision::Deny);
    assert_eq!(without_sandbox(&some, "make"), Decision::Ask);
    assert_eq!(without_sandbox(&some, "ls"), Decision::Allow);
}

#[test]
fn only_its_hosts_are_reached() {
    let rules = r#"
deny = ["network(bad.example.com)"]
ask = ["network(asked.example.com)"]
hosts = { hosts = ["*.example.com", "pypi"], origin = "the policy" }
"#;
    for user in ["", EVERYTHING] {
        let gate = limited(user, rules);
        let asks = |host: &str| {
            let arguments = json!({ "command": "ls", "hosts": [host] }).to_string();
            explain(&gate, "bash", &arguments, &[&format!("network({host})"), "network"])
        };
        let evil = asks("evil.org");
        assert_eq!(evil.decision(), Decision::Deny);
        assert!(evil.to_string().contains("not among the hosts of the policy"), "{evil}");
        assert_eq!(asks("bad.example.com").decision(), Decision::Deny);
        assert_eq!(asks("asked.example.com").decision(), Decision::Ask);
        assert_eq!(asks("a.example.com").decision(), Decision::Allow);
        assert_eq!(asks("a.example.com:22").decision(), Decision::Deny);
        let granted = ["network", "network(evil.org)", "network(asked.example.com)"];
        let granted: Vec<Rule> = granted.iter().map(|rule| Rule((*rule).to_owned())).collect();
        let access = gate.hosts(&granted);
        let of = |host: &str| access.of(&HostPort::parse(host, Some(443)).unwrap());
        assert_eq!(of("evil.org"), Access::Denied);
        assert_eq!(of("bad.example.com"), Access::Denied);
        assert_eq!(of("asked.example.com"), Access::NotAllowed);
        assert_eq!(of("a.example.com"), Access::Allowed);
    }
}

#[test]
fn rules_about_tools_that_are_not_ours_hold_too() {
    let gate = limited(
        EVERYTHING,
        r#"deny = ["terminal_input(delivery=a*)"]
ask = ["terminal_start"]"#,
    );
    let by_rules = |tool: &str, arguments: &str| {
        let arguments = RawJson::parse(arguments).unwrap();
        let granted = [Rule(tool.to_owned())];
        gate.judge_by_rules(&GateRequest { tool, arguments: &arguments, granted: &granted })
    };
    assert!(matches!(
        by_rules("terminal_input", r#"{"delivery":"ab"}"#),
        Some(GateVerdict::Deny { .. })
    ));
    assert!(matches!(by_rules("terminal_start", "{}"), Some(GateVerdict::Ask { .. })));
    assert!(matches!(by_rules("terminal_input", r#"{"delivery":"b"}"#), Some(GateVerdict::Allow)));
}

#[test]
fn an_empty_policy_changes_nothing() {
    for user in ["", EVERYTHING, "mode = \"read-only\""] {
        for (own, sandboxed) in [(gate(user), true), (open_gate(user), false)] {
            let within = own.clone().within(&PolicyRules::default()).unwrap();
            for text in
                ["ls", "git push", "eval \"$X\"", "echo x > .git/config", "echo x > $D/config"]
            {
                for granted in [vec![], vec![format!("bash(={text})")]] {
                    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
                    let arguments = json!({ "command": text }).to_string();
                    let (one, other) = (
                        explain(&own, "bash", &arguments, &granted),
                        explain(&within, "bash", &arguments, &granted),
                    );
                    assert_eq!(one, other, "{user} {sandboxed}: {text}");
                }
            }
        }
    }
}

#[test]
fn a_narrowed_gate_keeps_it() {
    let gate = limited(EVERYTHING, r#"deny = ["bash(curl *)"]"#);
    let child = gate.narrowed(&antiphon_permissions::Limits::default()).unwrap();
    assert_eq!(granted_script(&child, "curl x", &["bash"]), Decision::Deny);
}
