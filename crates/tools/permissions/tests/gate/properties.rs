//! What holds for all commands, however they are written or wrapped.

use std::time::{Duration, Instant};

use antiphon_permissions::{Decision, Limits, PermissionConfig, PermissionMode, SCRIPT_BYTES_MAX};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{bounds, explain, gate, open_gate, script};

/// Wrappers, with a hole for a simple command.
const COMMAND_WRAPPERS: &[&str] = &[
    "command %",
    "env %",
    "env A=1 %",
    "nohup %",
    "nice -n 3 %",
    "timeout 5 %",
    "xargs %",
    "xargs -n 1 %",
    "setsid %",
    "stdbuf -oL %",
    "sudo %",
    "busybox %",
    "exec %",
    "time %",
    "find . -exec % \\;",
    "flock /tmp/l %",
];

/// Wrappers, with a hole for any script.
const SCRIPT_WRAPPERS: &[&str] = &[
    "%",
    "( % )",
    "{ %\n}",
    "ls; %",
    "ls && %",
    "ls | %",
    "x=$( % )",
    "echo \"$( % )\"",
    "cat <( % )",
    "if %\nthen :; fi",
    "while %\ndo break; done",
    "for i in 1; do %\ndone",
    "case x in x) %\n;; esac",
    "f() { %\n}; f",
    "echo ${x:-$( % )}",
    "%\nls",
    "% # x\n",
    ": \\\n; %",
    "[[ -n $( % ) ]]",
    "(( $( % ) ))",
    "cat <<@\n$( % )\n@\n",
    "% &",
];

/// Ways to write a word so that quotes make no difference.
fn quoted(word: &str, how: u8) -> String {
    match how % 7 {
        0 => word.to_owned(),
        1 => format!("'{word}'"),
        2 => format!("\"{word}\""),
        3 => format!("$'{word}'"),
        4 => format!("{}\"\"{}", &word[..1], &word[1..]),
        5 => format!("\\{word}"),
        _ => format!("{}\\\n{}", &word[..1], &word[1..]),
    }
}

fn wrapped(inner: String, wrappers: &[(bool, usize)]) -> String {
    wrappers.iter().enumerate().fold(inner, |text, (level, (shell, at))| {
        if *shell {
            let shell = if at % 2 == 0 { "sh -c" } else { "eval" };
            format!("{shell} '{}'", text.replace('\'', "'\\''"))
        } else {
            let form = SCRIPT_WRAPPERS[at % SCRIPT_WRAPPERS.len()];
            form.replace('@', &format!("E{level}")).replace('%', &text)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_denied_command_stays_denied_in_any_wrapping(
        commands in prop::collection::vec(prop::sample::select(COMMAND_WRAPPERS), 0..5),
        scripts in prop::collection::vec((prop::bool::weighted(0.2), any::<usize>()), 0..5),
    ) {
        let mode = "mode = \"full\"\ndeny = [\"bash(rm *)\"]";
        let inner = commands.iter().fold("rm x".to_owned(), |text, form| form.replace('%', &text));
        let text = wrapped(inner, &scripts);
        // `exec` and `time` within others, or bash's own forms for `sh`, may not be understood;
        // never are they allowed.
        let decision = script(&gate(mode), &text);
        prop_assert_ne!(decision, Decision::Allow, "{:?}", text);
        if !scripts.iter().any(|(shell, _)| *shell) {
            prop_assert_eq!(decision, Decision::Deny, "{:?}", text);
        }
    }

    #[test]
    fn quotes_do_not_change_the_verdict(
        words in prop::collection::vec(prop::sample::select(&["git", "push", "status", "rm", "main"][..]), 1..4),
        how in prop::collection::vec(any::<u8>(), 4),
    ) {
        let gate = open_gate(
            "allow = [\"bash(git status *)\"]\nask = [\"bash(git push *)\"]\ndeny = [\"bash(rm *)\"]",
        );
        let written: Vec<String> =
            words.iter().zip(&how).map(|(word, how)| quoted(word, *how)).collect();
        prop_assert_eq!(script(&gate, &words.join(" ")), script(&gate, &written.join(" ")));
    }

    #[test]
    fn nothing_panics_and_nothing_unknown_is_allowed_to_write_where_it_must_not(
        text in ".{0,200}",
        tool in prop_oneof![Just("bash".to_owned()), Just("write".to_owned()), ".{0,12}"],
    ) {
        let gate = gate("deny = [\"bash(rm *)\"]\nask = [\"write(src/**)\"]");
        let arguments = json!({ "command": text, "path": format!(".git/{}", text.replace(['\0', '/', '.'], "")) });
        let decision = explain(&gate, &tool, &arguments.to_string(), &[&text]).decision();
        if tool == "write" {
            prop_assert_eq!(decision, Decision::Deny);
        }
    }

    #[test]
    fn a_narrowed_gate_never_allows_more(
        parent in config(), child in limits(), grandchild in limits(), call in call(),
        sandboxed in any::<bool>(), granted in prop::collection::vec(rule(), 0..3),
    ) {
        let parent = antiphon_permissions::Gate::new(&parent, bounds(sandboxed)).unwrap();
        let child = parent.narrowed(&child).unwrap();
        let grandchild = child.narrowed(&grandchild).unwrap();
        let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
        let decide = |gate| explain(gate, &call.0, &call.1, &granted).decision();
        prop_assert!(decide(&child) >= decide(&parent), "{:?}", call);
        prop_assert!(decide(&grandchild) >= decide(&child), "{:?}", call);
    }
}

fn rule() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "bash",
            "bash(git *)",
            "bash(git push *)",
            "bash(rm *)",
            "bash(*)",
            "bash(=git push)",
            "write",
            "write(src/**)",
            "write(**)",
            "read(/etc/**)",
            "edit(src/a.rs)",
            "mcp__*",
            "mcp__github__push",
            "mcp__github__push(repo=acme/*)",
            "*",
            "other",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn rules() -> impl Strategy<Value = Vec<antiphon_permissions::RuleEntry>> {
    prop::collection::vec(rule().prop_map(|rule| rule.as_str().into()), 0..3)
}

fn mode() -> impl Strategy<Value = PermissionMode> {
    prop::sample::select(
        &[PermissionMode::ReadOnly, PermissionMode::Workspace, PermissionMode::Full][..],
    )
}

fn config() -> impl Strategy<Value = PermissionConfig> {
    (mode(), rules(), rules(), rules()).prop_map(|(mode, allow, ask, deny)| PermissionConfig {
        mode,
        allow,
        ask,
        deny,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop::option::of(mode()), rules(), rules()).prop_map(|(mode, ask, deny)| Limits {
        mode,
        ask,
        deny,
    })
}

fn call() -> impl Strategy<Value = (String, String)> {
    let scripts = ["git push", "git status; rm x", "ls", "eval $X", "sudo ls", "echo > src/a.rs"];
    let paths = ["src/a.rs", "/etc/passwd", ".git/config", "../x"];
    let bash = prop::sample::select(scripts.to_vec())
        .prop_map(|text| ("bash".to_owned(), json!({ "command": text }).to_string()));
    let tools = prop::sample::select(vec!["read", "write", "edit", "grep"]);
    let files = (tools, prop::sample::select(paths.to_vec()))
        .prop_map(|(tool, path)| (tool.to_owned(), json!({ "path": path }).to_string()));
    let others =
        prop::sample::select(vec!["mcp__github__push", "mcp__github__get", "other", "call_agent"])
            .prop_map(|tool| (tool.to_owned(), json!({ "repo": "acme/x" }).to_string()));
    prop_oneof![bash, files, others]
}

/// Texts that grow, and what is at their middle.
fn large(size: usize) -> Vec<String> {
    let nested = |open: &str, close: &str| {
        let times = size / (open.len() + close.len());
        format!("{}rm x{}", open.repeat(times), close.repeat(times))
    };
    vec![
        "a".repeat(size),
        "a ".repeat(size / 2),
        "ls;".repeat(size / 3),
        "env ".repeat(size / 4) + "rm x",
        "\\\n".repeat(size / 2) + "rm x",
        "'".repeat(size),
        "\"".repeat(size),
        "`".repeat(size),
        "$(".repeat(size / 2),
        "((".repeat(size / 2),
        "<<E ".repeat(size / 4) + "\n",
        "{a,".repeat(size / 3),
        "f()".repeat(size / 3),
        "cd x;".repeat(size / 5) + "> y",
        "x[".repeat(size / 2),
        nested("$(", ")"),
        nested("( ", ")"),
        nested("{ ", ";}"),
        nested("\"$(", ")\""),
        nested("if ", ";then :;fi"),
        nested("case x in x) ", ";;esac"),
        nested("${x:-", "}"),
        nested("eval ", ""),
        nested("! ", ""),
        nested("f() ", ""),
    ]
}

#[test]
fn large_and_deep_scripts_are_judged_in_bounded_time() {
    let gate = gate("deny = [\"bash(rm *)\"]");
    // Of what is too long, not much is looked at.
    for (size, texts) in [(SCRIPT_BYTES_MAX - 16, usize::MAX), (1024 * 1024, 3)] {
        for text in large(size).into_iter().take(texts) {
            let start = Instant::now();
            let decision = script(&gate, &text);
            let shown: String = text.chars().take(20).collect();
            assert!(start.elapsed() < Duration::from_secs(4), "{shown} {:?}", start.elapsed());
            if text.contains("rm x") || size > SCRIPT_BYTES_MAX {
                assert_ne!(decision, Decision::Allow, "{shown}");
            }
        }
    }
}

#[test]
fn a_script_that_is_too_long_is_asked_about() {
    let gate = gate("mode = \"workspace\"");
    assert_eq!(script(&gate, &"ls\n".repeat(SCRIPT_BYTES_MAX / 3)), Decision::Ask);
    assert_eq!(script(&gate, &format!("echo {}", "a".repeat(1000))), Decision::Allow);
}
