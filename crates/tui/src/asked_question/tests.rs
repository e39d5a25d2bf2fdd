use antiphon_core::port::Rule;
use antiphon_core::{
    ApprovalId, ApprovalRequested, Choice, ChoiceQuestion, PlanQuestion, RawJson, TaskId,
    ToolCallId,
};
use chrono::DateTime;

use super::*;

fn asked(rule: &str) -> AskedQuestion {
    asked_about(rule, None)
}

fn asked_about(rule: &str, question: Option<Question>) -> AskedQuestion {
    let request = ApprovalRequested {
        approval_id: ApprovalId::parse("q1").unwrap(),
        tool_call_id: ToolCallId::parse("c1").unwrap(),
        tool_name: "bash".to_owned(),
        arguments: RawJson::parse("{}").unwrap(),
        reason: String::new(),
        rule: Rule(rule.to_owned()),
        expires_at: None,
        boot_until: None,
        question,
    };
    let task_id = TaskId::parse("01a2").unwrap();
    AskedQuestion::new(Approval::requested(task_id, &request, DateTime::UNIX_EPOCH))
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(_))
}

#[test]
fn a_key_answers_only_after_a_second_without_keys() {
    let (start, mut question) = (Instant::now(), asked("bash(x)"));
    assert_eq!(question.ready_at(), None, "it is not shown");
    assert!(is_refused(&question.key('y')));
    question.is_on_screen(start, false);
    question.is_on_screen(start + READING_TIME, false);
    assert_eq!(question.ready_at(), Some(start + READING_TIME));
    assert!(is_refused(&question.key('y')));
    let half = start + READING_TIME / 2;
    question.typed(half);
    assert_eq!(question.ready_at(), Some(half + READING_TIME));
    question.be_ready();
    assert_eq!(question.ready_at(), None);
    assert_eq!(question.key('x'), Answer::Unrelated);
    assert_eq!(question.key('y'), decided(Decision::AllowOnce));
    question.was_hidden();
    assert!(is_refused(&question.key('n')), "an overlay was on the screen");
}

#[test]
fn always_needs_a_second_key_which_is_another_one() {
    let mut question = asked("bash(x)");
    question.is_on_screen(Instant::now(), false);
    question.be_ready();
    assert_eq!(question.key('a'), Answer::Asks);
    assert!(is_refused(&question.key('a')));
    assert_eq!(question.key('a'), Answer::Asks);
    assert_eq!(question.key('y'), decided(Decision::AllowAlways));
}

#[test]
fn a_call_without_a_rule_is_allowed_once_or_not() {
    let mut question = asked("");
    question.is_on_screen(Instant::now(), false);
    question.be_ready();
    assert!(is_refused(&question.key('t')));
    assert!(is_refused(&question.key('a')));
    assert_eq!(question.key('y'), decided(Decision::AllowOnce));
}

#[test]
fn a_text_that_was_begun_before_the_question_allows_nothing() {
    let (start, mut question) = (Instant::now(), asked("bash(x)"));
    question.is_on_screen(start, true);
    let later = start + READING_TIME;
    assert!(is_refused(&question.text("not this one", start)), "it appeared just now");
    question.be_ready();
    assert!(is_refused(&question.text("y", later)));
    assert!(is_refused(&question.text("ok", later)));
    let reason = ApprovalReply {
        decision: Decision::Deny,
        comment: Some("not this one".to_owned()),
        answer: None,
    };
    assert_eq!(question.text("not this one", later), Answer::Decided(reason));
    question.prompt_is_empty();
    assert_eq!(question.text("y", later), decided(Decision::AllowOnce));
    question.typed(later);
    assert!(is_refused(&question.text("y", later + READING_TIME)), "Enter came at once");
    assert_eq!(question.text("n", later), decided(Decision::Deny));
}

#[test]
fn a_choice_is_typed_and_no_key_or_earlier_text_answers_it() {
    let choice = |label: &str| Choice { label: label.to_owned(), description: None };
    let colors = ChoiceQuestion {
        text: "Which color?".to_owned(),
        choices: vec![choice("Red"), choice("Blue")],
        multiple: false,
        free_text: false,
        default: None,
    };
    let (start, mut question) = (Instant::now(), asked_about("", Some(Question::Choice(colors))));
    question.is_on_screen(start, true);
    question.be_ready();
    let later = start + READING_TIME;
    assert_eq!(question.key('y'), Answer::Unrelated);
    assert!(is_refused(&question.text("2", later)), "it was typed before the question");
    question.prompt_is_empty();
    assert!(is_refused(&question.text("green", later)));
    let Answer::Decided(reply) = question.text("2", later) else { panic!("a number answers") };
    assert_eq!(reply.answer.map(|answer| answer.choices), Some(vec!["Blue".to_owned()]));
    assert!(!question.takes_default(), "it has none");
}

#[test]
fn a_plan_is_accepted_by_a_key_and_sent_back_by_a_text() {
    let plan = Question::Plan(PlanQuestion { plan: "Do it.".to_owned() });
    let (start, mut question) = (Instant::now(), asked_about("bash(x)", Some(plan)));
    question.is_on_screen(start, false);
    assert!(is_refused(&question.key('y')), "it appeared just now");
    question.be_ready();
    assert!(is_refused(&question.key('a')), "a plan has no rule");
    assert_eq!(question.key('y'), decided(Decision::AllowOnce));
    let change = ApprovalReply {
        decision: Decision::Deny,
        comment: Some("add a test".to_owned()),
        answer: None,
    };
    assert_eq!(question.text("add a test", start + READING_TIME), Answer::Decided(change));
}
