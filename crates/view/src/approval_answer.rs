//! The typed answer of a person to an [`ApprovalQuestion`](crate::ApprovalQuestion), and when no answer is needed
//! any longer.

use antiphon_core::{Approval, ApprovalReply, Decision, Event, EventBody, Question};

use crate::question::answers_text;

/// The answers that a person can type when a call may run or not.
const ANSWERS: &str = "y, t, a, or n";

/// Leaves a question unanswered.
const UNANSWERED: &str = "-";

/// Reads the line that a person typed about an approval. The error says what can be typed.
///
/// Of a call, a text that is none of the answers denies it, and is the reason. An empty line, and a word of consent that is none
/// of the answers, is no answer: it is no reason to refuse. Of a plan, such a text says what to change. Of a question, it is
/// numbers or labels of choices, or the answer in words.
pub fn typed_reply(approval: &Approval, line: &str) -> Result<ApprovalReply, String> {
    let line = line.trim();
    match &approval.question {
        None => decision(line).ok_or_else(|| ANSWERS.to_owned()),
        Some(question @ Question::Plan(_)) => match decision(line) {
            Some(ApprovalReply {
                decision: Decision::AllowTask | Decision::AllowAlways, ..
            })
            | None => Err(answers_text(question)),
            Some(reply) => Ok(reply),
        },
        Some(question @ Question::Choice(choice)) => {
            if line == UNANSWERED {
                return Ok(reply(Decision::Deny, None));
            }
            if line.is_empty() {
                let consent = reply(Decision::AllowOnce, None);
                return choice
                    .default
                    .as_ref()
                    .map(|_| consent)
                    .ok_or_else(|| answers_text(question));
            }
            let answer = choice.read_answer(line).ok_or_else(|| answers_text(question))?;
            Ok(ApprovalReply::answering(answer))
        }
    }
}

fn reply(decision: Decision, comment: Option<String>) -> ApprovalReply {
    ApprovalReply { decision, comment, answer: None }
}

fn decision(line: &str) -> Option<ApprovalReply> {
    let decision = match line.to_ascii_lowercase().as_str() {
        "" | "ok" | "okay" | "sure" | "allow" | "fine" | "yeah" | "yep" => return None,
        "y" | "yes" => Decision::AllowOnce,
        "t" | "task" => Decision::AllowTask,
        "a" | "always" => Decision::AllowAlways,
        "n" | "no" => Decision::Deny,
        _ => return Some(reply(Decision::Deny, Some(line.to_owned()))),
    };
    Some(reply(decision, None))
}

/// Whether an event decides an approval, or ends the task that needs it.
pub fn settles(event: &Event, approval: &Approval) -> bool {
    if let EventBody::ApprovalDecided(decided) = &event.body {
        return decided.approval_id == approval.approval_id;
    }
    event.body.ends_task() && approval.task_id == event.task_id
}

#[cfg(test)]
mod tests {
    use antiphon_core::port::Rule;
    use antiphon_core::{
        Answer, ApprovalId, ApprovalRequested, Choice, ChoiceQuestion, PlanQuestion, RawJson,
        TaskId, ToolCallId,
    };
    use chrono::DateTime;

    use super::*;

    fn approval(question: Option<Question>) -> Approval {
        let request = ApprovalRequested {
            approval_id: ApprovalId::parse("q1").unwrap(),
            tool_call_id: ToolCallId::parse("c1").unwrap(),
            tool_name: "bash".to_owned(),
            arguments: RawJson::parse("{}").unwrap(),
            reason: "it pushes".to_owned(),
            rule: Rule("bash(git push *)".to_owned()),
            expires_at: None,
            boot_until: None,
            question,
        };
        Approval::requested(TaskId::parse("01a2").unwrap(), &request, DateTime::UNIX_EPOCH)
    }

    fn colors(multiple: bool, free_text: bool) -> Approval {
        let choice = |label: &str| Choice { label: label.to_owned(), description: None };
        approval(Some(Question::Choice(ChoiceQuestion {
            text: "Which color?".to_owned(),
            choices: vec![choice("Red"), choice("Dark blue")],
            multiple,
            free_text,
            default: None,
        })))
    }

    #[test]
    fn a_typed_line_is_a_decision_or_the_reason_of_a_refusal() {
        let call = approval(None);
        let allowed = |decision| Ok(reply(decision, None));
        assert_eq!(typed_reply(&call, " Yes "), allowed(Decision::AllowOnce));
        assert_eq!(typed_reply(&call, "t"), allowed(Decision::AllowTask));
        assert_eq!(typed_reply(&call, "OK"), Err(ANSWERS.to_owned()));
        assert_eq!(typed_reply(&call, "always"), allowed(Decision::AllowAlways));
        assert_eq!(typed_reply(&call, "N"), allowed(Decision::Deny));
        assert!(typed_reply(&call, "  ").is_err());
        let comment = Some("not on Fridays".to_owned());
        assert_eq!(typed_reply(&call, "not on Fridays"), Ok(reply(Decision::Deny, comment)));
    }

    #[test]
    fn a_typed_line_is_the_number_or_the_label_of_a_choice_or_an_answer_in_words() {
        let chose = |labels: &[&str]| {
            let choices = labels.iter().map(|&label| label.to_owned()).collect();
            Ok(ApprovalReply::answering(Answer { choices, text: None }))
        };
        assert_eq!(typed_reply(&colors(false, false), "2"), chose(&["Dark blue"]));
        assert_eq!(typed_reply(&colors(false, false), "dark BLUE"), chose(&["Dark blue"]));
        assert_eq!(typed_reply(&colors(true, false), "1, 2"), chose(&["Red", "Dark blue"]));
        assert!(typed_reply(&colors(false, false), "1,2").is_err());
        assert!(typed_reply(&colors(true, false), "1,1").is_err());
        assert!(typed_reply(&colors(false, false), "green").is_err());
        assert!(typed_reply(&colors(false, true), "").is_err(), "there is no default");
        let text = Some("green".to_owned());
        let said = ApprovalReply::answering(Answer { choices: Vec::new(), text });
        assert_eq!(typed_reply(&colors(false, true), "green"), Ok(said));
        assert_eq!(typed_reply(&colors(false, true), "-"), Ok(reply(Decision::Deny, None)));
    }

    #[test]
    fn a_plan_is_accepted_rejected_or_sent_back_with_what_to_change() {
        let plan = approval(Some(Question::Plan(PlanQuestion { plan: "Do it.".to_owned() })));
        assert_eq!(typed_reply(&plan, "y"), Ok(reply(Decision::AllowOnce, None)));
        assert!(typed_reply(&plan, "always").is_err());
        let comment = Some("add a test".to_owned());
        assert_eq!(typed_reply(&plan, "add a test"), Ok(reply(Decision::Deny, comment)));
    }
}
