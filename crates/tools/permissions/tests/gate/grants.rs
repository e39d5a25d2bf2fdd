//! Rules that a user approved: for the task, or always.

use antiphon_core::port::GateVerdict;
use antiphon_permissions::Decision::{self, Allow, Ask, Deny};
use serde_json::json;

use crate::world::{
    bounds, explain, gate, granted_script, in_repository, judge, open_gate, proposed,
};

const ASKING: &str = r#"ask = ["bash(git push *)", "bash(rm *)", "bash(make)"]
deny = ["bash(git push --force *)"]"#;

#[test]
fn the_rule_that_is_asked_for_is_made_from_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), ASKING, &["origin"], bounds(false));
    let cases = [
        ("git push", "bash(git push *)"),
        ("git push origin main", "bash(git push *)"),
        ("'git' \"push\" origin", "bash(git push *)"),
        ("make", "bash(make)"),
        ("cargo", "bash(cargo)"),
        ("cargo build --release", "bash(cargo build *)"),
        ("timeout 5 cargo build", "bash(cargo build *)"),
        ("cargo build && cargo build -v", "bash(cargo build *)"),
        ("ls && cargo build", "bash(cargo build *)"),
        ("./run.sh fast", "bash(./run.sh fast *)"),
        // Nothing short would say enough, or could be written.
        ("rm -rf build", "bash(=rm -rf build)"),
        ("cargo build && cargo test", "bash(=cargo build && cargo test)"),
        ("python3 -c 'print(1)'", "bash(=python3 -c 'print(1)')"),
        ("cargo \"$X\"", "bash(=cargo \"$X\")"),
        ("$X y", "bash(=$X y)"),
        ("sudo make", "bash(=sudo make)"),
        ("LD_PRELOAD=x cargo build", "bash(=LD_PRELOAD=x cargo build)"),
        ("foo 'a b'", "bash(=foo 'a b')"),
        ("foo '*'", "bash(=foo '*')"),
        ("ls )", "bash(=ls ))"),
    ];
    for (script, rule) in cases {
        let verdict = judge(&gate, "bash", &json!({ "command": script }).to_string(), &[]);
        assert_eq!(proposed(&verdict), rule, "{script}");
        assert_eq!(granted_script(&gate, script, &[rule]), Allow, "{script} with {rule}");
    }
}

#[test]
fn files_are_asked_about_by_their_path_and_others_by_their_name() {
    let gate = gate("ask = [\"write(docs/**)\", \"edit(a\\\\[1\\\\].txt)\"]");
    let cases = [
        ("write", json!({ "path": "docs/./a.md" }), "write(docs/a.md)"),
        ("write", json!({ "path": "/home/me/project/docs/a.md" }), "write(docs/a.md)"),
        ("read", json!({ "path": "/etc/hosts" }), "read(/etc/hosts)"),
        ("edit", json!({ "path": "a[1].txt" }), "edit(a\\[1\\].txt)"),
        ("mcp__github__push", json!({ "repo": "x" }), "mcp__github__push"),
        ("fetch", json!(["not", "an", "object"]), "fetch"),
    ];
    for (tool, arguments, rule) in cases {
        let arguments = arguments.to_string();
        let verdict = judge(&gate, tool, &arguments, &[]);
        assert_eq!(proposed(&verdict), rule, "{tool} {arguments}");
        assert_eq!(
            judge(&gate, tool, &arguments, &[rule]),
            GateVerdict::Allow,
            "{tool} with {rule}"
        );
    }
    let docs = json!({ "path": "docs/b.md" }).to_string();
    assert_eq!(explain(&gate, "write", &docs, &["write(docs/a.md)"]).decision(), Ask);
}

#[test]
fn a_grant_lifts_a_question_only_as_far_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), ASKING, &["origin"], bounds(false));
    let cases: &[(Decision, &str, &[&str])] = &[
        (Allow, "git push", &["bash(git push *)"]),
        (Allow, "git push origin", &["bash(git push origin *)"]),
        (Allow, "git push", &["bash(=git push)"]),
        // An explicit question is not lifted by something wider.
        (Ask, "git push", &["bash(git *)"]),
        (Ask, "git push", &["bash(*)"]),
        (Ask, "git push", &["bash"]),
        (Ask, "git push", &["*"]),
        (Ask, "make", &["bash(make *)"]),
        (Allow, "make", &["bash(make)"]),
        (Allow, "make all", &["bash(make *)"]),
        // A question by default is.
        (Allow, "cargo build", &["bash(cargo *)"]),
        (Allow, "cargo build", &["bash(*)"]),
        (Allow, "cargo build", &["bash"]),
        (Allow, "cargo build", &["*"]),
        (Ask, "cargo build", &["bash(cargo test *)"]),
        (Ask, "cargo build", &["not a rule ("]),
        // A warning is overridden by the program's name, or by the very text, or for the whole tool.
        (Ask, "source x", &["bash(*)"]),
        (Allow, "source x", &["bash(source x)"]),
        (Ask, "sudo cargo build", &["bash(cargo build *)"]),
        (Ask, "sudo cargo build", &["bash(sudo cargo *)"]),
        (Allow, "sudo cargo build", &["bash(sudo cargo *)", "bash(cargo build *)"]),
        (Allow, "sudo cargo build", &["bash"]),
        (Ask, "PATH=. ls", &["bash(ls *)"]),
        (Ask, "$X", &["bash(*)"]),
        // What an explicit question was answered about is still looked at.
        (Ask, "LD_PRELOAD=x git push", &["bash(git push *)"]),
        (Ask, "git push $X", &["bash(git push *)"]),
        (Allow, "git push $X", &["bash(=git push $X)"]),
        // A denial never is.
        (
            Deny,
            "git push --force",
            &["bash(=git push --force)", "bash(git push --force *)", "bash"],
        ),
    ];
    for (expected, script, granted) in cases {
        assert_eq!(granted_script(&gate, script, granted), *expected, "{script} with {granted:?}");
    }
}

#[test]
fn a_grant_changes_nothing_where_only_looking_is_allowed() {
    let gate = gate("mode = \"read-only\"");
    for granted in ["bash", "bash(ls)", "bash(=ls)", "*"] {
        assert_eq!(granted_script(&gate, "ls", &[granted]), Deny, "{granted}");
    }
    let path = json!({ "path": "x" }).to_string();
    assert_eq!(explain(&gate, "write", &path, &["write(x)", "write"]).decision(), Deny);
    assert_eq!(explain(&gate, "mcp__a__b", "{}", &["mcp__a__b"]).decision(), Deny);
}

#[test]
fn a_question_says_what_led_to_it_and_what_would_answer_it() {
    let gate = open_gate(ASKING);
    let reason =
        |script: &str| match judge(&gate, "bash", &json!({ "command": script }).to_string(), &[]) {
            GateVerdict::Ask { reason, .. } | GateVerdict::Deny { reason } => reason,
            GateVerdict::Allow => String::new(),
        };
    assert_eq!(
        reason("cargo build"),
        "`cargo build`: without a sandbox, mode workspace asks about commands. To allow it from \
         now on, add `bash(cargo build *)` to `allow` in the permissions."
    );
    assert_eq!(
        reason("git push"),
        "`git push`: the rule `bash(git push *)` asks. Without an approver it does not run, \
         unless `bash(git push *)` is removed from the permissions; an approver can allow \
         `bash(git push *)`."
    );
    assert_eq!(
        reason("git push --force x"),
        "`git push --force x`: the rule `bash(git push --force *)` denies it. Do without it, or \
         tell the user what you need and why."
    );
}

#[test]
fn a_question_about_an_argument_is_lifted_by_the_rule_it_proposes() {
    let gate = gate("ask = [\"*(path=/opt/*)\", \"*(command=*x*)\", \"fetch(url=*)\"]");
    for (tool, arguments) in [
        ("read", json!({ "path": "/opt/a" })),
        ("bash", json!({ "command": "echo x" })),
        ("fetch", json!({ "url": "y" })),
    ] {
        let arguments = arguments.to_string();
        let verdict = judge(&gate, tool, &arguments, &[]);
        let rule = proposed(&verdict);
        assert_eq!(
            judge(&gate, tool, &arguments, &[rule]),
            GateVerdict::Allow,
            "{tool} with {rule}"
        );
    }
}

fn without_sandbox(
    gate: &antiphon_permissions::Gate,
    script: &str,
    granted: &[&str],
) -> GateVerdict {
    let arguments = json!({ "command": script, "without_sandbox": true }).to_string();
    judge(gate, "bash", &arguments, granted)
}

#[test]
fn a_call_without_the_sandbox_is_asked_about_whatever_is_allowed_inside() {
    let rules = "allow = ['bash', 'bash(*)', '*', 'bash(git push *)', 'bash(ls *)']";
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), rules, &["origin"], bounds(true));
    for script in ["ls", "git push", "true", "cat x > y", "ls | wc -l", "x=1", "git push $X"] {
        let verdict = without_sandbox(&gate, script, &["bash", "bash(git push *)", "*"]);
        assert!(matches!(verdict, GateVerdict::Ask { .. }), "{script} {verdict:?}");
    }
    assert_eq!(
        proposed(&without_sandbox(&gate, "git push origin", &[])),
        "unsandboxed(git push *)"
    );
    assert_eq!(proposed(&without_sandbox(&gate, "ls; make", &[])), "unsandboxed(=ls; make)");
}

#[test]
fn a_grant_for_a_call_without_the_sandbox_covers_what_it_says() {
    let rules = "deny = ['bash(rm *)', 'unsandboxed(curl *)']\nallow = ['unsandboxed(npm ci)']";
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), rules, &["origin"], bounds(true));
    let cases: &[(Decision, &str, &[&str])] = &[
        (Allow, "git push", &["unsandboxed(git push *)"]),
        (Allow, "git push origin main", &["unsandboxed(git push *)"]),
        (Ask, "git push; make", &["unsandboxed(git push *)"]),
        (Allow, "git push; make", &["unsandboxed(=git push; make)"]),
        (Ask, "git push > log", &["unsandboxed(git push *)"]),
        (Ask, "PATH=. git push", &["unsandboxed(git push *)"]),
        (Ask, "git push $X", &[]),
        (Allow, "npm ci", &[]),
        (Ask, "npm ci x", &[]),
        (Deny, "rm x", &["unsandboxed", "unsandboxed(rm *)"]),
        (Deny, "curl x", &["unsandboxed", "unsandboxed(curl *)"]),
    ];
    for (expected, script, granted) in cases {
        let verdict = without_sandbox(&gate, script, granted);
        let decision = match verdict {
            GateVerdict::Allow => Allow,
            GateVerdict::Ask { .. } => Ask,
            GateVerdict::Deny { .. } => Deny,
        };
        assert_eq!(decision, *expected, "{script} with {granted:?}");
    }
    // Inside the sandbox these rules forbid nothing.
    assert_eq!(granted_script(&gate, "curl x", &[]), Allow);
}

#[test]
fn a_malformed_request_to_leave_the_sandbox_is_denied() {
    let gate = gate("");
    for arguments in [
        r#"{"command":"ls","without_sandbox":"true"}"#,
        r#"{"command":"ls","without_sandbox":false,"without_sandbox":true}"#,
    ] {
        assert!(
            matches!(judge(&gate, "bash", arguments, &[]), GateVerdict::Deny { .. }),
            "{arguments}"
        );
    }
}

#[test]
fn a_change_of_the_repository_is_asked_about() {
    let gate = gate("");
    for (script, rule) in [
        ("git commit -m x", "bash(git commit *)"),
        ("git add . && git commit -m x", "bash(=git add . && git commit -m x)"),
    ] {
        let verdict = judge(&gate, "bash", &json!({ "command": script }).to_string(), &[]);
        assert_eq!(proposed(&verdict), rule, "{script}");
        assert_eq!(granted_script(&gate, script, &[rule]), Allow, "{script}");
    }
    assert_eq!(granted_script(&gate, "git status; git log", &[]), Allow);
    // In another folder git may find another repository: the sandbox stays closed.
    assert_eq!(granted_script(&gate, "git -C sub add .", &[]), Allow);
    let read_only = crate::world::gate("mode = 'read-only'");
    assert_eq!(granted_script(&read_only, "git commit -m x", &["bash(git commit *)"]), Deny);
}

#[test]
fn no_approval_opens_the_sandbox_of_a_whole_task() {
    let config: antiphon_permissions::PermissionConfig =
        toml::from_str("allow = ['unsandboxed']").unwrap();
    let bounds = antiphon_permissions::Bounds {
        sandbox: antiphon_permissions::Sandbox::OfTask,
        ..bounds(true)
    };
    let gate = antiphon_permissions::Gate::new(&config, bounds).unwrap();
    let verdict = without_sandbox(&gate, "ls", &["unsandboxed(ls)"]);
    assert!(matches!(verdict, GateVerdict::Deny { .. }), "{verdict:?}");
    // Git would be refused in any case, so there is nothing to ask.
    assert_eq!(granted_script(&gate, "git commit -m x", &[]), Allow);
}
