//! Rules about hosts: what a call may ask for, and what commands reach without asking.

use antiphon_core::port::{Gate as _, Rule};
use antiphon_hosts::{Access, HostPort};
use antiphon_permissions::Decision::{self, Allow, Ask, Deny};
use antiphon_permissions::{Gate, Limits, Remembered};
use serde_json::{Value, json};

use crate::world::{ROOT, explain, gate, judge, proposed, try_gate};

fn call(hosts: Value) -> String {
    json!({ "command": "curl x", "hosts": hosts }).to_string()
}

/// What becomes of a call that asks for these hosts.
fn asking(gate: &Gate, hosts: &[&str], granted: &[&str]) -> Decision {
    explain(gate, "bash", &call(json!(hosts)), granted).decision()
}

/// Whether commands reach this host without asking.
fn reaches(gate: &Gate, target: &str, granted: &[&str]) -> bool {
    let granted: Vec<Rule> = granted.iter().map(|rule| Rule((*rule).to_owned())).collect();
    let target = HostPort::parse(target, Some(443)).unwrap();
    gate.hosts(&granted).of(&target) == Access::Allowed
}

#[test]
fn by_default_no_host_is_reached_and_each_is_asked_about() {
    let gate = gate("");
    assert!(!reaches(&gate, "example.org", &[]));
    assert_eq!(asking(&gate, &["example.org"], &[]), Ask);
    assert_eq!(asking(&gate, &[], &[]), Allow);
    let verdict = judge(&gate, "bash", &call(json!(["Example.org.", "localhost:8081"])), &[]);
    assert_eq!(proposed(&verdict), "network(example.org localhost:8081)");
    let granted = [proposed(&verdict)];
    assert_eq!(asking(&gate, &["localhost:8081"], &granted), Allow);
    assert!(reaches(&gate, "example.org", &granted));
    assert!(reaches(&gate, "localhost:8081", &granted));
    assert!(!reaches(&gate, "localhost:8082", &granted));
    assert_eq!(asking(&gate, &["sub.example.org"], &granted), Ask);
}

#[test]
fn the_question_says_when_a_host_is_not_in_the_internet() {
    let gate = gate("");
    for (host, reason) in [
        ("localhost:8081", "a service of this machine"),
        ("[::1]:80", "a service of this machine"),
        ("10.0.0.1", "a private network"),
        ("registry.corp=private", "a private network"),
        ("example.org", "only hosts that you allow"),
    ] {
        let explanation = explain(&gate, "bash", &call(json!([host])), &[]);
        assert!(explanation.to_string().contains(reason), "{explanation}");
    }
}

#[test]
fn only_the_hosts_that_are_new_are_asked_about() {
    let gate = gate("allow = [\"network(pypi *.example.org)\"]");
    let hosts = json!(["files.pythonhosted.org", "a.example.org", "new.org", "example.org"]);
    let verdict = judge(&gate, "bash", &call(hosts), &[]);
    assert_eq!(proposed(&verdict), "network(new.org example.org)");
    assert_eq!(asking(&gate, &["pypi.org", "b.example.org:443"], &[]), Allow);
    assert_eq!(asking(&gate, &["pypi.org:8080"], &[]), Ask);
    assert_eq!(asking(&gate, &["a.example.org=private"], &[]), Ask);
    assert!(reaches(&gate, "pypi.org", &[]) && !reaches(&gate, "new.org", &[]));
}

#[test]
fn rules_about_commands_open_no_host() {
    for allow in ["bash", "bash(curl *)", "bash(=curl x)", "*", "b*"] {
        let gate = gate(&format!("allow = [\"{allow}\"]"));
        assert_eq!(asking(&gate, &["example.org"], &[]), Ask, "{allow}");
        assert_eq!(asking(&gate, &["example.org"], &["bash", "bash(=curl x)"]), Ask, "{allow}");
        assert!(!reaches(&gate, "example.org", &[allow]), "{allow}");
    }
    let everything = gate("allow = [\"network\"]");
    assert!(reaches(&everything, "example.org", &[]));
    assert!(!reaches(&everything, "10.0.0.1", &[]) && !reaches(&everything, "localhost", &[]));
}

#[test]
fn deny_and_ask_are_stricter_than_allow_and_grants() {
    let gate = gate(
        "allow = [\"network(*.example.org a.net)\"]\nask = [\"network(asked.example.org)\"]\n\
         deny = [\"network(bad.example.org)\"]",
    );
    let granted = ["network(bad.example.org)"];
    assert_eq!(asking(&gate, &["bad.example.org"], &granted), Deny);
    assert!(!reaches(&gate, "bad.example.org", &granted));
    assert_eq!(asking(&gate, &["asked.example.org"], &[]), Ask);
    assert_eq!(asking(&gate, &["asked.example.org"], &["network(*.example.org)"]), Ask);
    assert!(!reaches(&gate, "asked.example.org", &["network(*.example.org)"]));
    assert_eq!(asking(&gate, &["asked.example.org"], &["network(asked.example.org)"]), Allow);
    assert!(reaches(&gate, "asked.example.org", &["network(asked.example.org)"]));
    for deny in ["network", "*", "net*"] {
        let gate =
            crate::world::gate(&format!("deny = [\"{deny}\"]\nallow = [\"network(a.net)\"]"));
        assert_eq!(asking(&gate, &["a.net"], &["network(a.net)"]), Deny, "{deny}");
        assert!(gate.hosts(&[]).is_closed(), "{deny}");
    }
}

#[test]
fn a_child_reaches_no_more_than_its_parent() {
    let parent = gate("allow = [\"network(a.org b.org)\"]");
    let limits: Limits = toml::from_str("deny = [\"network(b.org)\"]").unwrap();
    let child = parent.narrowed(&limits).unwrap();
    assert!(reaches(&child, "a.org", &[]) && !reaches(&child, "b.org", &[]));
    assert!(reaches(&parent, "b.org", &[]));
    let looking: Limits = toml::from_str("mode = \"read-only\"").unwrap();
    let looking = parent.narrowed(&looking).unwrap();
    assert_eq!(asking(&looking, &["a.org"], &["network(a.org)"]), Deny);
    assert!(!reaches(&looking, "a.org", &["network(a.org)"]));
}

#[test]
fn what_is_not_a_host_is_denied() {
    let gate = gate("allow = [\"network\"]");
    for hosts in [
        json!(["169.254.169.254"]),
        json!(["[::ffff:127.0.0.1]"]),
        json!(["*.example.org"]),
        json!(["registries", "a b"]),
        json!("example.org"),
        json!([["example.org"]]),
        json!(["https://example.org"]),
    ] {
        assert_eq!(explain(&gate, "bash", &call(hosts.clone()), &[]).decision(), Deny, "{hosts}");
    }
    let twice = r#"{"command":"ls","hosts":[],"hosts":["example.org"]}"#;
    assert_eq!(explain(&gate, "bash", twice, &[]).decision(), Deny);
    let none = r#"{"command":"ls","hosts":null}"#;
    assert_eq!(explain(&gate, "bash", none, &[]).decision(), Allow);
}

#[test]
fn rules_are_checked_against_their_examples() {
    let good = "allow = [{ rule = \"network(*.example.org)\", examples = [\"a.example.org\"], \
                not = [\"example.org\", \"a.example.org:22\", \"a.example.org.evil.net\"] }]";
    assert!(try_gate(good, true).is_ok());
    let bad = "allow = [{ rule = \"network(example.org)\", examples = [\"a.example.org\"] }]";
    assert!(try_gate(bad, true).is_err());
    for rule in ["network(*.org)", "network()", "network(a/b)", "network(a=b)", "network(*)"] {
        assert!(try_gate(&format!("allow = [\"{rule}\"]"), true).is_err(), "{rule}");
    }
}

#[tokio::test]
async fn a_host_that_is_allowed_always_is_reached_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("permissions.toml");
    let remembering = || gate("").remembering(Remembered::open(&file, ROOT.as_ref()).unwrap());
    let first = remembering();
    first.remember(&Rule("network(pypi.org localhost:8081)".to_owned())).await.unwrap();
    for gate in [first, remembering()] {
        assert!(reaches(&gate, "pypi.org", &[]) && reaches(&gate, "localhost:8081", &[]));
        assert_eq!(asking(&gate, &["pypi.org"], &[]), Allow);
        assert_eq!(asking(&gate, &["example.org"], &[]), Ask);
    }
}
