use antiphon_core::port::Rule;
use antiphon_core::{ApprovalId, ApprovalRequested, RawJson, TaskId, ToolCallId};
use chrono::DateTime;

use super::*;

fn approval(arguments: &str) -> Approval {
    let request = ApprovalRequested {
        approval_id: ApprovalId::parse("q1").unwrap(),
        tool_call_id: ToolCallId::parse("c1").unwrap(),
        tool_name: "bash".to_owned(),
        arguments: RawJson::parse(arguments).unwrap(),
        reason: "it pushes".to_owned(),
        rule: Rule("bash(git push *)".to_owned()),
        expires_at: None,
    };
    Approval::requested(TaskId::parse("01a2").unwrap(), &request, DateTime::UNIX_EPOCH)
}

#[test]
fn a_question_of_a_task_below_names_its_agent_and_says_how_many_follow() {
    let asked = question(&approval(r#"{"command":"git push"}"#), Some("researcher (task 01a2)"), 2);
    let expected = r#"? researcher (task 01a2) asks: bash {"command":"git push"} (2 more after this)
  it pushes
  allow? [y]es once, [t]his task, [a]lways: bash(git push *), [n]o, or no and why"#;
    assert_eq!(asked, expected);
}

#[test]
fn a_question_of_the_watched_task_names_nobody() {
    let asked = question(&approval("{}"), None, 0);
    assert!(asked.starts_with("? bash {}\n  it pushes\n"), "{asked}");
}

#[test]
fn arguments_that_are_not_all_shown_say_so() {
    let long = format!(r#"{{"command":"{}"}}"#, "x".repeat(3000));
    let asked = question(&approval(&long), None, 0);
    assert!(asked.contains("… AND 1014 MORE CHARACTERS"), "{asked}");
}
