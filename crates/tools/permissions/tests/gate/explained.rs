//! The account of a judgement.

use antiphon_core::port::Rule;
use antiphon_permissions::Decision;
use serde_json::json;

use crate::world::{explain, gate};

#[test]
fn the_explanation_lists_every_command_and_file() {
    let gate =
        gate("allow = [\"bash(git *)\"]\nask = [\"bash(git push *)\"]\ndeny = [\"write(.env)\"]");
    let script = "timeout 5 git status && sh -c 'git push' > .env; make $(ls)";
    let explanation = explain(&gate, "bash", &json!({ "command": script }).to_string(), &[]);
    let shown = explanation.to_string();
    assert_eq!(
        shown,
        "deny: write `.env` by redirection: the rule `write(.env)` denies it. Do without it, or \
         tell the user what you need and why.
  allow  `timeout 5 git status`: what it runs is judged
  allow  `git status`: the rule `bash(git *)` allows it
  deny   write `.env` by redirection: the rule `write(.env)` denies it
  allow  `sh -c 'git push'`: what it runs is judged
  ask    `git push`: the rule `bash(git push *)` asks
  allow  `ls`: the sandbox bounds it
  allow  `make $(ls)`: the sandbox bounds it"
    );
    let requested = explanation.findings.iter().find(|finding| finding.decision == Decision::Ask);
    assert_eq!(requested.unwrap().rule, Some(Rule("bash(git push *)".into())));
}

#[test]
fn long_and_strange_commands_are_shown_short_and_harmless() {
    let gate = gate("");
    let script = format!("echo '\u{1b}[31m' {}", "a".repeat(1000));
    let explanation = explain(&gate, "bash", &json!({ "command": script }).to_string(), &[]);
    let shown = explanation.to_string();
    assert!(!shown.lines().skip(1).any(|line| line.contains('\u{1b}')), "{shown}");
    assert!(explanation.findings.iter().all(|finding| finding.what.len() < 200), "{shown}");
}
