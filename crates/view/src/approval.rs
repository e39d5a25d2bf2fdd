//! The question a person answers before a tool call runs.

use antiphon_core::{Approval, visible};

/// Characters of a call's arguments that a question shows.
const ARGUMENTS_CHARS_MAX: usize = 2000;

/// What the person at the terminal is asked about a call, in three lines. `task` names the task when it
/// is not the watched one; `more` is how many approvals are pending behind this one.
pub fn approval_question(approval: &Approval, task: Option<&str>, more: usize) -> String {
    let task = task.map_or(String::new(), |task| format!("{} asks: ", visible(task)));
    let more = if more == 0 { String::new() } else { format!(" ({more} more after this)") };
    // Not about a tool call: about a sender that wants to reach a program without a sandbox.
    let is_about_sender = approval.tool_name.starts_with("terminal_");
    let for_task = if is_about_sender { "[t]his sender for this task" } else { "[t]his task" };
    format!(
        "? {task}{} {}{more}\n  {}\n  allow? [y]es once, {for_task}, [a]lways: {}, [n]o, or type a reason to refuse",
        visible(&approval.tool_name),
        visible(&shown_arguments(approval.arguments.as_str())),
        visible(&approval.reason),
        visible(&approval.rule.0),
    )
}

/// Arguments on one line. Says how much is not shown: a person must not allow a call unseen.
fn shown_arguments(arguments: &str) -> String {
    let shown: String = arguments.chars().take(ARGUMENTS_CHARS_MAX).collect();
    let left = arguments.chars().count().saturating_sub(ARGUMENTS_CHARS_MAX);
    let shown = shown.replace(['\n', '\r'], " ");
    if left == 0 {
        return shown;
    }
    format!("{shown} … AND {left} MORE CHARACTERS: see `antiphon approvals list --json`")
}

#[cfg(test)]
mod tests {
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
    fn a_question_of_a_descendant_names_its_agent_and_the_number_of_pending_approvals() {
        let call = approval(r#"{"command":"git push"}"#);
        let question = approval_question(&call, Some("researcher (task 01a2)"), 2);
        let expected = r#"? researcher (task 01a2) asks: bash {"command":"git push"} (2 more after this)
  it pushes
  allow? [y]es once, [t]his task, [a]lways: bash(git push *), [n]o, or type a reason to refuse"#;
        assert_eq!(question, expected);
    }

    #[test]
    fn a_question_of_the_watched_task_names_no_task() {
        let question = approval_question(&approval("{}"), None, 0);
        assert!(question.starts_with("? bash {}\n  it pushes\n"), "{question}");
    }

    #[test]
    fn a_question_says_how_many_characters_of_the_arguments_are_not_shown() {
        let long = format!(r#"{{"command":"{}"}}"#, "x".repeat(3000));
        let question = approval_question(&approval(&long), None, 0);
        assert!(question.contains("… AND 1014 MORE CHARACTERS"), "{question}");
    }
}
