//! What can be written down, and what is refused.

use antiphon_core::port::Rule;
use antiphon_permissions::{
    Bounds, ConfigError, Effects, Gate, Limits, PermissionConfig, PermissionMode,
};

use crate::world::try_gate;

fn error(config: &str) -> String {
    match try_gate(config, true) {
        Ok(_) => panic!("{config} was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_configuration_may_be_empty_and_may_not_have_what_is_not_known() {
    let config: PermissionConfig = toml::from_str("").unwrap();
    assert_eq!(config, PermissionConfig::default());
    assert_eq!(config.mode, PermissionMode::Workspace);
    for (text, part) in [
        ("modus = \"full\"", "unknown field `modus`"),
        ("mode = \"yolo\"", "unknown variant `yolo`"),
        ("allow = [1]", "a rule, as a text or a table"),
        ("allow = [{ rule = \"bash\", example = [] }]", "unknown field `example`"),
        ("allow = [{ examples = [] }]", "missing field `rule`"),
    ] {
        let error = toml::from_str::<PermissionConfig>(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let text = r#"mode = "read-only"
allow = ["bash(ls *)", { rule = "bash(git push *)", examples = ["git push"], not = ["git pull"], reason = "x" }]
"#;
    let config: PermissionConfig = toml::from_str(text).unwrap();
    let again: PermissionConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let limits: Limits = toml::from_str("mode = \"read-only\"\ndeny = [\"bash\"]").unwrap();
    assert_eq!(limits.mode, Some(PermissionMode::ReadOnly));
}

#[test]
fn a_rule_that_cannot_be_read_is_named() {
    for (rule, part) in [
        ("", "is not the name of a tool"),
        ("bash(ls", "is not closed"),
        ("bash()", "its pattern is empty"),
        ("ba sh", "is not the name of a tool"),
        ("bash(ls; rm *)", "a pattern is one command"),
        ("bash($X)", "a pattern is one command"),
        ("bash(ls 'x)", "is not closed"),
        ("bash(ls \\\\)", "ends in a backslash"),
        ("bash(A=1 ls)", "begins with an assignment"),
        ("write(~/x)", "write the path in full"),
        ("write(../x)", "leads out of the workspace"),
        ("write(a[)", "unclosed character class"),
        ("mcp__a(b)", "is not `ARGUMENT=VALUE`"),
        ("mcp__a(=b)", "is not `ARGUMENT=VALUE`"),
    ] {
        let error = error(&format!("deny = [\"{rule}\"]"));
        assert!(error.contains(part), "{rule}: {error}");
        assert!(error.starts_with("the rule `"), "{error}");
    }
}

#[test]
fn rules_are_tried_on_their_own_examples() {
    let good = r#"
allow = [
  { rule = "bash(cargo test *)", examples = ["cargo test", "cargo test && cargo test -p x", "timeout 5 cargo test"], not = ["cargo testx", "cargo test; ls", "./cargo test"] },
  { rule = "write(src/**)", examples = ["src/a.rs", "/home/me/project/src/b/c.rs"], not = ["src", "srcs/a"] },
  { rule = "mcp__github__*", examples = ["mcp__github__list", 'mcp__github__get {"a":1}'], not = ["mcp__gitlab__list"] },
  { rule = "fetch(url=https://docs.rs/*)", examples = ['fetch {"url":"https://docs.rs/x"}'], not = ['fetch {"url":"https://evil.example/https://docs.rs/"}', "fetch"] },
]
deny = [
  { rule = "bash(rm *)", examples = ["rm x", "ls; sudo /bin/rm x", "xargs rm"], not = ["echo rm"], reason = "use `git clean`" },
  { rule = "bash(=ls  -l)", examples = ["ls  -l"], not = ["ls -l"] },
  { rule = "bash", examples = ["anything )"] },
]"#;
    try_gate(good, true).unwrap();
    let bad = try_gate("deny = [{ rule = \"bash(rm -rf *)\", examples = [\"rm -fr x\"] }]", true);
    assert_eq!(
        bad.unwrap_err(),
        ConfigError::Example { rule: Rule("bash(rm -rf *)".into()), example: "rm -fr x".into() }
    );
    let bad = try_gate("allow = [{ rule = \"write(**)\", not = [\".env\"] }]", true);
    assert_eq!(
        bad.unwrap_err().to_string(),
        "the rule `write(**)` matches `.env`, which it says it does not"
    );
    let unreadable = error("allow = [{ rule = \"fetch(a=b)\", examples = [\"fetch {\"] }]");
    assert!(unreadable.contains("its example `fetch {` cannot be read"), "{unreadable}");
}

#[test]
fn the_reason_of_a_rule_is_shown() {
    use crate::world::judge;
    let gate = try_gate("deny = [{ rule = \"bash(rm *)\", reason = \"use git clean\" }]", true);
    let verdict = judge(&gate.unwrap(), "bash", r#"{"command":"rm x"}"#, &[]);
    assert!(format!("{verdict:?}").contains("the rule `bash(rm *)` (use git clean) denies it"));
}

#[test]
fn a_workspace_must_be_given_in_full() {
    let bounds = Bounds {
        root: "relative".into(),
        sandbox: antiphon_permissions::Sandbox::OfCommand,
        hidden: Vec::new(),
        effects: Effects::new(|_| None),
    };
    let error = Gate::new(&PermissionConfig::default(), bounds).unwrap_err();
    assert_eq!(error, ConfigError::Root { root: "relative".into() });
}
