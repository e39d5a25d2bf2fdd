//! The question a person answers before a tool call runs: what is asked for, whole or with the number of lines
//! that are not shown, why it is asked, and then the answers.
//!
//! The call is text of a model. Each of its lines stands behind a bar, with control and invisible characters
//! escaped and broken to the width of the terminal, so that none of it can look like a line of the question.
//! Long runs of blanks are counted instead of shown, and every part has a limit, so that none of it moves the
//! rest of the question out of sight. What an agent asks a person is shown the same way (`question`).

mod edits;

use std::fmt::Write as _;

use antiphon_core::Approval;
use serde_json::{Map, Value};

use crate::colors::Colors;
use crate::display::escaped;
use crate::question::{Extent, answers_text, question_lines, question_text};
use crate::text::{break_line, count, wrap};

/// Lines of a call that a question shows.
const CALL_LINES_MAX: usize = 40;

/// Characters of a call on one line.
const CALL_CHARS_MAX: usize = 100;

/// Characters of a reason.
const REASON_CHARS_MAX: usize = 800;

/// Characters of a rule, and of the names of a tool and a task.
const RULE_CHARS_MAX: usize = 200;

/// Blanks in a row that are shown as they are: an indentation.
const BLANKS_MAX: usize = 16;

/// Stands before each line of a call.
pub(crate) const BAR: &str = "  │ ";

/// Stands before the reason.
const WHY: &str = "  why: ";

/// The argument that is shown without its name when it is the only one, and first when it is not.
const COMMAND: &str = "command";

/// The argument that names a file.
const PATH: &str = "path";

/// What the person at the terminal is asked about a call.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalQuestion<'a> {
    /// The call.
    pub approval: &'a Approval,
    /// The task, when it is not the watched one.
    pub task: Option<&'a str>,
    /// How many approvals are pending behind this one.
    pub more: usize,
    /// Whether the question is colored.
    pub colors: Colors,
    /// Columns of the terminal.
    pub width: usize,
}

impl ApprovalQuestion<'_> {
    /// The lines of the question. They hold nothing but colors that controls the terminal.
    pub fn lines(self) -> Vec<String> {
        let Self { approval, colors, .. } = self;
        let name = |text: &str| bounded(&readable(text), RULE_CHARS_MAX);
        let task = self.task.map_or(String::new(), |task| format!("{} asks: ", name(task)));
        let more = match self.more {
            0 => String::new(),
            more => format!(" ({more} more after this)"),
        };
        let first = format!("? {task}{}{more}", name(&approval.tool_name));
        let mut lines = vec![colors.bold(&colors.yellow(&first))];
        if let Some(question) = &approval.question {
            lines.extend(question_lines(question, Extent::Bounded, colors, self.width));
            lines.push(format!("  {}", answers_text(question)));
            return lines;
        }
        lines.extend(self.call_lines());
        let columns = self.width.saturating_sub(WHY.len());
        let why = wrap(&bounded(&readable(&approval.reason), REASON_CHARS_MAX), columns);
        lines.extend(why.iter().enumerate().map(|(index, line)| {
            let before = if index == 0 { WHY } else { &" ".repeat(WHY.len()) };
            colors.yellow(&format!("{before}{line}"))
        }));
        // Not about a tool call: about a sender that wants to reach a program without a sandbox.
        let is_about_sender = approval.tool_name.starts_with("terminal_");
        let for_task = if is_about_sender { "[t]his sender for this task" } else { "[t]his task" };
        let longer = match approval.rule.0.as_str() {
            // No rule can allow it.
            "" => String::new(),
            _ => format!(" {for_task}, [a]lways: {},", rule_text(approval)),
        };
        lines.push(format!("  allow? [y]es once,{longer} [n]o, or type a reason to refuse"));
        lines
    }

    fn call_lines(self) -> Vec<String> {
        let (colors, columns) = (self.colors, self.width.saturating_sub(BAR.chars().count()));
        let lines = argument_lines(self.approval.arguments.as_str());
        let mut pieces = lines.iter().flat_map(|line| {
            let pieces = break_line(&line.text, columns);
            pieces.into_iter().map(|text| CallLine { kind: line.kind, text })
        });
        let shown: Vec<CallLine> = pieces.by_ref().take(CALL_LINES_MAX).collect();
        let left = pieces.count() as u64;
        let mut lines: Vec<String> =
            shown.iter().map(|line| colors.cyan(BAR) + &line.colored(colors)).collect();
        if left > 0 {
            let left = count(left, "more line");
            let text = format!("  … {left}: `antiphon approvals list --json` has the whole call");
            lines.push(colors.bold(&colors.red(&text)));
        }
        lines
    }
}

/// A line of a call, escaped whole.
struct CallLine {
    kind: LineKind,
    text: String,
}

/// What a line of a call does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Nothing that is known.
    Plain,
    Added,
    Removed,
    /// Stands unchanged around a change.
    Unchanged,
}

impl CallLine {
    fn plain(text: String) -> Self {
        Self { kind: LineKind::Plain, text }
    }

    fn colored(&self, colors: Colors) -> String {
        match self.kind {
            LineKind::Plain => colors.bold(&self.text),
            LineKind::Added => colors.green(&self.text),
            LineKind::Removed => colors.red(&self.text),
            LineKind::Unchanged => colors.dim(&self.text),
        }
    }
}

/// The arguments of a call in lines: a command alone, or each argument with its name; edits as differences.
fn argument_lines(arguments: &str) -> Vec<CallLine> {
    let plain = |lines: Vec<String>| lines.into_iter().map(CallLine::plain).collect();
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return plain(text_lines(arguments));
    };
    let command = arguments.get(COMMAND).and_then(Value::as_str);
    if let Some(command) = command.filter(|_| arguments.len() == 1) {
        return plain(text_lines(command));
    }
    let (mut named, others): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|(name, _)| *name == COMMAND);
    named.extend(others);
    // The path before what becomes of the file.
    named.sort_by_key(|(name, _)| name.as_str() != PATH && name.as_str() != COMMAND);
    let lines = |(name, value): (&String, &Value)| match edits::lines(name, value) {
        Some(lines) => lines,
        None => plain(named_lines(name, value)),
    };
    named.into_iter().flat_map(lines).collect()
}

fn named_lines(name: &str, value: &Value) -> Vec<String> {
    let name = bounded(&readable(name), RULE_CHARS_MAX);
    let Value::String(text) = value else {
        return vec![format!("{name}: {}", readable(&value.to_string()))];
    };
    match text_lines(text).as_slice() {
        [line] => vec![format!("{name}: {line}")],
        lines => {
            let lines = lines.iter().map(|line| format!("  {line}"));
            std::iter::once(format!("{name}:")).chain(lines).collect()
        }
    }
}

/// The lines of a text, each escaped whole. A line break at the end begins no other line.
pub(crate) fn text_lines(text: &str) -> Vec<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(readable).collect()
}

/// Every line of a call, or of the question that it asks, escaped, behind a bar: for a question that is not asked on a terminal.
pub fn call_lines(approval: &Approval) -> Vec<String> {
    if let Some(question) = &approval.question {
        return question_lines(question, Extent::Whole, Colors::Off, usize::MAX);
    }
    let lines = argument_lines(approval.arguments.as_str());
    lines.iter().map(|line| format!("{BAR}{}", line.text)).collect()
}

/// Every line of the arguments of a call, escaped; edits as differences.
pub fn call_argument_lines(arguments: &str, colors: Colors) -> Vec<String> {
    let colored = |line: &CallLine| match line.kind {
        LineKind::Plain => line.text.clone(),
        LineKind::Added | LineKind::Removed | LineKind::Unchanged => line.colored(colors),
    };
    argument_lines(arguments).iter().map(colored).collect()
}

/// A call, or the question that it asks, on one line, escaped whole, with the number of characters that are not shown.
pub fn call_text(approval: &Approval) -> String {
    if let Some(question) = &approval.question {
        return question_text(question);
    }
    let text = format!("{} {}", approval.tool_name, approval.arguments.as_str());
    bounded(&readable(&text), CALL_CHARS_MAX)
}

/// The rule that an approval proposes, on one line.
pub fn rule_text(approval: &Approval) -> String {
    bounded(&readable(&approval.rule.0), RULE_CHARS_MAX)
}

/// `text` escaped whole; blanks that are no spaces are escapes, too, and a long run of spaces is a number.
pub(crate) fn readable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut spaces = 0;
    for c in escaped(text).chars().map(Some).chain([None]) {
        if c == Some(' ') {
            spaces += 1;
            continue;
        }
        if spaces > BLANKS_MAX {
            // Writing to a String does not fail.
            let _ = write!(shown, "␣×{spaces}");
        } else {
            shown.extend(std::iter::repeat_n(' ', spaces));
        }
        spaces = 0;
        match c {
            Some(c) if is_blank(c) => shown.extend(c.escape_unicode()),
            Some(c) => shown.push(c),
            None => {}
        }
    }
    shown
}

/// Whether `c` shows as nothing, and is not the space.
fn is_blank(c: char) -> bool {
    (c.is_whitespace() && c != ' ') || matches!(c, '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// `text`, or the start of it with the number of characters that are not shown.
pub(crate) fn bounded(text: &str, chars_max: usize) -> String {
    let shown: String = text.chars().take(chars_max).collect();
    match text.chars().count().saturating_sub(chars_max) {
        0 => shown,
        left => format!("{shown}… {}", count(left as u64, "more character")),
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::port::Rule;
    use antiphon_core::{ApprovalId, ApprovalRequested, RawJson, TaskId, ToolCallId};
    use chrono::DateTime;
    use serde_json::json;

    use super::*;

    fn approval(tool_name: &str, arguments: &Value) -> Approval {
        let request = ApprovalRequested {
            approval_id: ApprovalId::parse("q1").unwrap(),
            tool_call_id: ToolCallId::parse("c1").unwrap(),
            tool_name: tool_name.to_owned(),
            arguments: RawJson::parse(&arguments.to_string()).unwrap(),
            reason: "it pushes".to_owned(),
            rule: Rule("bash(git push *)".to_owned()),
            expires_at: None,
            boot_until: None,
            question: None,
        };
        Approval::requested(TaskId::parse("01a2").unwrap(), &request, DateTime::UNIX_EPOCH)
    }

    fn question(approval: &Approval) -> String {
        let colors = Colors::Off;
        ApprovalQuestion { approval, task: None, more: 0, colors, width: 60 }.lines().join("\n")
    }

    const ANSWERS: &str = "  allow? [y]es once, [t]his task, [a]lways: bash(git push *), [n]o, or type a reason to refuse";

    #[test]
    fn a_question_of_a_descendant_names_its_agent_and_the_number_of_pending_approvals() {
        let call = approval("bash", &json!({"command": "git push"}));
        let task = Some("researcher (task 01a2)");
        let asked =
            ApprovalQuestion { approval: &call, task, more: 2, colors: Colors::Off, width: 80 };
        let expected = [
            "? researcher (task 01a2) asks: bash (2 more after this)",
            "  │ git push",
            "  why: it pushes",
            ANSWERS,
        ];
        assert_eq!(asked.lines(), expected);
    }

    #[test]
    fn every_line_of_a_command_is_shown_behind_a_bar() {
        let command = "echo ok\r\nrm -rf ~ #\u{202e}\x1b[1A\x1b[2K\n  why: harmless\n";
        let shown = question(&approval("bash", &json!({ "command": command })));
        let expected = [
            "? bash",
            r"  │ echo ok\r",
            r"  │ rm -rf ~ #\u{202e}\u{1b}[1A\u{1b}[2K",
            "  │   why: harmless",
            "  why: it pushes",
            ANSWERS,
        ];
        assert_eq!(shown, expected.join("\n"));
    }

    #[test]
    fn an_edit_is_shown_as_a_difference_and_nothing_of_it_is_left_out() {
        let edits = json!([
            {"old": "one\ntwo\n", "new": "one\n2\u{202e}\n"},
            {"old_string": "x", "new_string": "", "replace_all": true},
        ]);
        let call = approval("edit", &json!({"edits": edits, "path": "a.txt"}));
        let shown = question(&call);
        let expected = [
            "  │ path: a.txt",
            "  │ 2 edits",
            "  │ edit 1",
            "  │  one",
            "  │ -two",
            r"  │ +2\u{202e}",
            "  │ edit 2: every place with this text",
            "  │ -x",
        ];
        assert!(shown.contains(&expected.join("\n")), "{shown}");
        let colors = Colors::On;
        let asked = ApprovalQuestion { approval: &call, task: None, more: 0, colors, width: 60 };
        let colored = asked.lines().join("\n");
        assert!(colored.contains("\x1b[31m-two") && colored.contains("\x1b[32m+2"), "{colored:?}");
        // A field that the tool does not know is not left out.
        let odd = json!({"path": "a.txt", "edits": [{"old": "a", "new": "b", "extra": 1}]});
        assert!(question(&approval("edit", &odd)).contains("extra"));
    }

    #[test]
    fn a_long_line_is_broken_so_that_its_rest_stays_behind_the_bar() {
        let command = format!("true {}{}", "\u{3000}".repeat(26), "? read a.txt");
        let shown = question(&approval("bash", &json!({ "command": command })));
        assert!(shown.lines().skip(1).take(2).all(|line| line.starts_with(BAR)), "{shown}");
        assert!(!shown.contains("\n? "), "{shown}");
    }

    #[test]
    fn no_part_of_a_call_moves_the_question_out_of_sight() {
        let command = format!("touch x; {}echo ok", " ".repeat(9000));
        let mut call = approval("bash", &json!({ "command": command.clone() }));
        call.rule = Rule(format!("unsandboxed(={command}{})", "y".repeat(9000)));
        call.reason = format!("{command}: {}", "z".repeat(9000));
        let shown = question(&call);
        assert!(shown.contains("touch x;␣×9001echo ok"), "{shown}");
        assert!(shown.contains("more characters, [n]o"), "{shown}");
        assert!(shown.chars().count() < 2000 && shown.lines().count() < 30, "{shown}");
        let task = "t".repeat(9000);
        let asked = ApprovalQuestion {
            approval: &call,
            task: Some(&task),
            more: 0,
            colors: Colors::Off,
            width: 60,
        };
        assert!(asked.lines()[0].chars().count() < 500);
    }

    #[test]
    fn blanks_that_are_no_spaces_are_escapes() {
        let command = "a\u{a0}b\u{2800}c\u{3000}d\u{2003}e\u{3164}f   g";
        let shown = question(&approval("bash", &json!({ "command": command })));
        let expected = r"  │ a\u{a0}b\u{2800}c\u{3000}d\u{2003}e\u{3164}f   g";
        assert!(shown.replace("\n  │ ", "").contains(&expected.replace("  │ ", "")), "{shown}");
        assert!(call_text(&approval("bash", &json!({ "command": command }))).contains(r"\u{2800}"));
    }

    #[test]
    fn arguments_have_names_and_the_command_is_the_first() {
        let call = json!({"a": [1, "\u{200b}"], "command": "x", "text": "one\ntwo", "\n": true});
        let shown = question(&approval("to\rol", &call));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], r"? to\rol");
        assert_eq!(lines[1], "  │ command: x");
        let mut rest = lines[2..lines.len() - 2].to_vec();
        rest.sort_unstable();
        let expected =
            ["  │   one", "  │   two", r"  │ \n: true", r#"  │ a: [1,"\u{200b}"]"#, "  │ text:"];
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        assert_eq!(rest, sorted);
    }

    #[test]
    fn a_question_says_how_many_lines_are_not_shown() {
        let command = (1..=100).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let shown = question(&approval("bash", &json!({ "command": command })));
        assert!(
            shown.contains("  │ 40\n  … 60 more lines: `antiphon approvals list --json`"),
            "{shown}"
        );
        assert!(shown.ends_with(ANSWERS), "{shown}");
        let wide = question(&approval("bash", &json!({ "command": "x".repeat(56 * 41) })));
        assert!(wide.contains("  … 1 more line: "), "{wide}");
    }

    #[test]
    fn colors_are_the_only_sequences() {
        let call = approval("bash", &json!({"command": "\x1b[31mred"}));
        let asked = ApprovalQuestion {
            approval: &call,
            task: None,
            more: 0,
            colors: Colors::On,
            width: 60,
        };
        let text = asked.lines().join("\n");
        assert!(text.contains("\x1b[1m"), "{text}");
        assert!(text.contains(r"\u{1b}[31mred"), "{text}");
    }

    #[test]
    fn a_call_on_one_line_says_how_much_is_not_shown() {
        let call = approval("bash", &json!({"command": "x".repeat(200)}));
        let shown = call_text(&call);
        assert!(shown.ends_with("… 119 more characters"), "{shown}");
        assert_eq!(call_text(&approval("a\nb", &json!({}))), r"a\nb {}");
    }
}
