//! Pages that `web_fetch` gets: the host decides.

use antiphon_permissions::Decision::{self, Allow, Ask, Deny};
use antiphon_permissions::{Gate, PolicyRules};
use serde_json::json;

use crate::world::{explain, gate, judge, proposed};

fn page(gate: &Gate, url: &str, granted: &[&str]) -> Decision {
    explain(gate, "web_fetch", &json!({ "url": url }).to_string(), granted).decision()
}

#[test]
fn the_host_of_a_page_is_asked_about_and_named() {
    let gate = gate("");
    let arguments = json!({ "url": "https://Docs.Example.org/a?b=c" }).to_string();
    let verdict = judge(&gate, "web_fetch", &arguments, &[]);
    assert_eq!(proposed(&verdict), "network(docs.example.org)");
    let granted = [proposed(&verdict)];
    assert_eq!(page(&gate, "https://docs.example.org/other", &granted), Allow);
    assert_eq!(page(&gate, "https://docs.example.org:8443/", &granted), Ask);
    assert_eq!(page(&gate, "https://example.org/", &granted), Ask);
    let explained = explain(&gate, "web_fetch", &arguments, &[]).to_string();
    assert!(explained.contains("the host `docs.example.org`"), "{explained}");
    let local = json!({ "url": "http://2130706433:8081/" }).to_string();
    let explained = explain(&gate, "web_fetch", &local, &[]).to_string();
    assert!(explained.contains("a service of this machine"), "{explained}");
}

#[test]
fn rules_about_hosts_decide_and_a_rule_for_the_tool_only_restricts() {
    let of = |config: &str, url: &str| page(&gate(config), url, &[]);
    let url = "https://a.example.org/";
    assert_eq!(of("allow = [\"network(*.example.org)\"]", url), Allow);
    assert_eq!(of("allow = [\"network\"]", url), Allow);
    assert_eq!(of("deny = [\"network(a.example.org)\"]\nallow = [\"network\"]", url), Deny);
    assert_eq!(of("mode = \"full\"", url), Allow);
    assert_eq!(of("mode = \"read-only\"\nallow = [\"network\"]", url), Deny);
    for allow in ["web_fetch", "*", "web*", "bash"] {
        assert_eq!(of(&format!("allow = [\"{allow}\"]"), url), Ask, "{allow}");
    }
    assert_eq!(of("deny = [\"web_fetch\"]\nallow = [\"network\"]", url), Deny);
    assert_eq!(of("ask = [\"web_fetch\"]\nallow = [\"network\"]", url), Ask);
    let asking = gate("ask = [\"web_fetch\"]\nallow = [\"network\"]");
    assert_eq!(page(&asking, url, &["web_fetch"]), Allow);
}

#[test]
fn what_is_no_page_of_a_host_is_denied() {
    let gate = gate("mode = \"full\"\nallow = [\"network\"]");
    for url in [
        "file:///etc/passwd",
        "ftp://example.org/",
        "https://user:pass@example.org/",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/",
        "nonsense",
        "",
    ] {
        assert_eq!(page(&gate, url, &[]), Deny, "{url}");
    }
    assert_eq!(explain(&gate, "web_fetch", "{}", &[]).decision(), Deny);
    let twice = r#"{"url":"https://a.org/","url":"https://b.org/"}"#;
    assert_eq!(explain(&gate, "web_fetch", twice, &[]).decision(), Deny);
}

#[test]
fn the_policy_of_the_machine_is_above_every_rule() {
    let policy: PolicyRules = toml::from_str("deny = [\"network(evil.org)\"]").unwrap();
    let gate = gate("mode = \"full\"\nallow = [\"network\"]").within(&policy).unwrap();
    assert_eq!(page(&gate, "https://evil.org/", &["network(evil.org)"]), Deny);
    assert_eq!(page(&gate, "https://good.org/", &[]), Allow);
}
