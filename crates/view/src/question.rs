//! Questions of agents, their plans and their lists, as lines. Like a call, each line that a model wrote stands behind a bar,
//! escaped, and is bounded, so that none of it can look like a line of ours.

use antiphon_core::{
    Answer, Approval, ChoiceQuestion, Plan, PlanStatus, Question, TodoItem, TodoStatus,
};

use crate::approval::{BAR, bounded, readable, text_lines};
use crate::colors::Colors;
use crate::text::{break_line, count};

/// Lines of a question that are shown; its choices are always shown.
const TEXT_LINES_MAX: usize = 40;

/// Lines of a plan that a question shows; `antiphon approvals show` shows all.
const PLAN_LINES_MAX: usize = 200;

/// Characters of a question or an answer on one line.
const LINE_CHARS_MAX: usize = 100;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as leaves the question in sight.
    Bounded,
    /// All of it.
    Whole,
}

/// The lines of what a person is asked, without the answers that are possible.
pub fn question_lines(
    question: &Question,
    extent: Extent,
    colors: Colors,
    width: usize,
) -> Vec<String> {
    let columns = width.saturating_sub(BAR.chars().count());
    let lines_max = |bounded| match extent {
        Extent::Bounded => bounded,
        Extent::Whole => usize::MAX,
    };
    match question {
        Question::Plan(plan) => {
            behind_bar(&text_lines(&plan.plan), lines_max(PLAN_LINES_MAX), colors, columns)
        }
        Question::Choice(question) => {
            let text = text_lines(&question.text);
            let mut lines = behind_bar(&text, lines_max(TEXT_LINES_MAX), colors, columns);
            lines.extend(behind_bar(&choice_lines(question), usize::MAX, colors, columns));
            lines
        }
    }
}

fn choice_lines(question: &ChoiceQuestion) -> Vec<String> {
    let is_default = |label: &String| {
        question.default.as_ref().is_some_and(|answer| answer.choices.contains(label))
    };
    let mut lines = Vec::new();
    for (number, choice) in (1..).zip(&question.choices) {
        let default = if is_default(&choice.label) { " (default)" } else { "" };
        lines.push(format!("{number}) {}{default}", readable(&choice.label)));
        lines.extend(choice.description.as_deref().map(|text| format!("     {}", readable(text))));
    }
    lines
}

fn behind_bar(lines: &[String], lines_max: usize, colors: Colors, columns: usize) -> Vec<String> {
    let mut pieces = lines.iter().flat_map(|line| break_line(line, columns));
    let shown: Vec<String> = pieces.by_ref().take(lines_max).collect();
    let left = pieces.count() as u64;
    let mut lines: Vec<String> =
        shown.iter().map(|line| format!("{}{}", colors.cyan(BAR), colors.bold(line))).collect();
    if left > 0 {
        let left = count(left, "more line");
        lines.push(colors.bold(&colors.red(&format!("  … {left}: see `antiphon approvals show`"))));
    }
    lines
}

/// What a person can type as the answer.
pub fn answers_text(question: &Question) -> String {
    let Question::Choice(question) = question else {
        return "accept the plan? [y]es, [n]o, or type what to change".to_owned();
    };
    let mut ways = Vec::new();
    match (question.choices.len(), question.multiple) {
        (0, _) => {}
        (_, false) => ways.push("a number"),
        (_, true) => ways.push("numbers, such as 1,3"),
    }
    if question.free_text {
        ways.push(if ways.is_empty() { "your answer" } else { "your own answer" });
    }
    if question.default.is_some() {
        ways.push("nothing for the default");
    }
    format!("answer: {}, or - to leave it unanswered", ways.join(", "))
}

/// What a person is asked, on one line.
pub fn question_text(question: &Question) -> String {
    let text = match question {
        Question::Choice(question) => format!("asks: {}", question.text),
        Question::Plan(plan) => format!("plan: {}", plan.plan),
    };
    bounded(&readable(&text), LINE_CHARS_MAX)
}

/// The answer to a question on one line; `None` while there is none.
pub fn answer_text(approval: &Approval) -> Option<String> {
    let Answer { choices, text } = approval.answer.as_ref()?;
    let parts: Vec<&str> = choices.iter().chain(text).map(String::as_str).collect();
    Some(bounded(&readable(&parts.join(", ")), LINE_CHARS_MAX))
}

/// The plan of a task with what became of it.
pub fn plan_lines(plan: &Plan, colors: Colors, width: usize) -> Vec<String> {
    let Plan { text, status, comment } = plan;
    let comment = comment.as_deref().map(|text| format!(": {}", bounded(&readable(text), 200)));
    let status_text = format!("plan, {}{}", status.as_str(), comment.unwrap_or_default());
    let first = match status {
        PlanStatus::Proposed => colors.yellow(&status_text),
        PlanStatus::Accepted | PlanStatus::Rejected => status_text,
    };
    let columns = width.saturating_sub(BAR.chars().count());
    let mut lines = vec![first];
    lines.extend(behind_bar(&text_lines(text), usize::MAX, colors, columns));
    lines
}

/// The list of things to do of an agent, one line each.
pub fn todo_lines(items: &[TodoItem], colors: Colors) -> Vec<String> {
    let line = |item: &TodoItem| {
        let text = readable(&item.text);
        match item.status {
            TodoStatus::Pending => format!("[ ] {text}"),
            TodoStatus::InProgress => colors.bold(&format!("[~] {text}")),
            TodoStatus::Done => colors.dim(&format!("[x] {text}")),
        }
    };
    items.iter().map(line).collect()
}

/// How far the list is, on one line: `2 of 5 done: write the test`. `None` for an empty list.
pub fn todo_text(items: &[TodoItem]) -> Option<String> {
    let done = items.iter().filter(|item| item.status == TodoStatus::Done).count();
    let current = items.iter().find(|item| item.status == TodoStatus::InProgress);
    let current =
        current.map(|item| format!(": {}", bounded(&readable(&item.text), LINE_CHARS_MAX)));
    (!items.is_empty())
        .then(|| format!("{done} of {} done{}", items.len(), current.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Choice, PlanQuestion};

    use super::*;

    fn database() -> ChoiceQuestion {
        let choice = |label: &str, about: Option<&str>| Choice {
            label: label.to_owned(),
            description: about.map(str::to_owned),
        };
        ChoiceQuestion {
            text: "Which database?\x1b[2K\nallow? [y]es".to_owned(),
            choices: vec![choice("SQLite", Some("one file")), choice("PostgreSQL", None)],
            multiple: false,
            free_text: true,
            default: Some(Answer { choices: vec!["SQLite".to_owned()], text: None }),
        }
    }

    #[test]
    fn every_line_of_a_question_stands_behind_a_bar_and_is_escaped() {
        let question = Question::Choice(database());
        let lines = question_lines(&question, Extent::Bounded, Colors::Off, 60);
        let expected = [
            r"  │ Which database?\u{1b}[2K",
            "  │ allow? [y]es",
            "  │ 1) SQLite (default)",
            "  │      one file",
            "  │ 2) PostgreSQL",
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            answers_text(&question),
            "answer: a number, your own answer, nothing for the default, or - to leave it unanswered"
        );
    }

    #[test]
    fn a_long_plan_says_how_much_of_it_is_not_shown() {
        let plan = (0..300).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let question = Question::Plan(PlanQuestion { plan });
        let lines = question_lines(&question, Extent::Bounded, Colors::Off, 60);
        assert_eq!(lines.len(), PLAN_LINES_MAX + 1);
        assert!(lines[PLAN_LINES_MAX].contains("… 100 more lines"), "{lines:?}");
        assert_eq!(question_lines(&question, Extent::Whole, Colors::Off, 60).len(), 300);
    }

    #[test]
    fn a_list_shows_how_far_it_is() {
        let item = |text: &str, status| TodoItem { text: text.to_owned(), status };
        let items = [
            item("read", TodoStatus::Done),
            item("wri\rte", TodoStatus::InProgress),
            item("test", TodoStatus::Pending),
        ];
        assert_eq!(todo_lines(&items, Colors::Off), ["[x] read", r"[~] wri\rte", "[ ] test"]);
        assert_eq!(todo_text(&items).as_deref(), Some(r"1 of 3 done: wri\rte"));
        assert_eq!(todo_text(&[]), None);
    }
}
