//! The whole transcript of a task: prompts, thinking, answers, calls with every argument, and results with every line.
//! Nothing is folded here.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, Event, EventBody, InputBlock, Message, TaskStatus, ToolResultMessage,
};
use antiphon_view::display::{Destination, escaped};
use antiphon_view::text::{line_count, one_line};
use antiphon_view::{Colors, call_argument_lines, tool_call_title};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::markdown::{self, expand_tabs};
use crate::sgr;
use crate::wrap::wrap;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Message(Arc<Message>),
    /// What the program says about the task.
    Note(String),
}

impl Entry {
    /// What an event adds to the transcript of its task.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    pub(crate) fn of(event: &Event) -> Option<Self> {
        match &event.body {
            EventBody::MessageAppended(appended) if !appended.superseded => {
                Some(Self::Message(Arc::new((*appended.message).clone())))
            }
            EventBody::Compacted(compacted) => Some(Self::compacted(&compacted.summary)),
            EventBody::HandedOver(over) => {
                Some(Self::Note(format!("→ hands over to {}", escaped(&over.agent))))
            }
            EventBody::StatusChanged(change) => match change.status {
                TaskStatus::Failed => {
                    let detail = change.detail.as_ref();
                    let error = detail.and_then(|detail| detail["error"].as_str()).unwrap_or("");
                    Some(Self::Note(format!("✗ the task failed: {}", escaped(error))))
                }
                TaskStatus::Canceled => Some(Self::Note("the task was canceled".to_owned())),
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::InputRequired
                | TaskStatus::Completed => None,
            },
            _ => None,
        }
    }

    /// From here on the model reads a summary.
    pub(crate) fn compacted(summary: &str) -> Self {
        let summary = Destination::Terminal.text(summary);
        Self::Note(format!(
            "── compacted: from here on the model reads this in place of what is above\n{summary}"
        ))
    }

    /// Bytes of its texts, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = 1;
        self.any_text(&mut |text| {
            bytes += text.len();
            false
        });
        bytes
    }

    /// Whether a line of it may have a text in lower case: the longest plain word of that is in one of its texts.
    pub(crate) fn may_have(&self, text: &str) -> bool {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let word = words.max_by_key(|word| word.len()).unwrap_or_default();
        self.any_text(&mut |text| text.to_ascii_lowercase().contains(word))
    }

    /// Whether one of the texts that its lines are made of is what is looked for.
    fn any_text(&self, is_found: &mut dyn FnMut(&str) -> bool) -> bool {
        match self {
            Self::Note(text) => is_found(text),
            Self::Message(message) => match &**message {
                Message::User(user) => is_found(&text_of(&user.content)),
                Message::Assistant(answer) => {
                    answer.content.iter().any(|block| any_text_of(block, is_found))
                }
                Message::ToolResult(result) => {
                    // The words of its title.
                    is_found(&format!("{} line lines", result.tool_name))
                        || is_found(&text_of(&result.content))
                }
            },
        }
    }

    /// Its lines, with a blank one behind them.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line<'static>> {
        let mut lines = match self {
            Self::Note(text) => text
                .lines()
                .flat_map(|line| wrap(&Line::styled(expand_tabs(line), DIM), width, 2))
                .collect(),
            Self::Message(message) => match &**message {
                Message::User(user) => prompt_lines(&text_of(&user.content), width),
                Message::Assistant(answer) => {
                    answer.content.iter().flat_map(|block| block_lines(block, width)).collect()
                }
                Message::ToolResult(result) => result_lines(result, width),
            },
        };
        if lines.last().is_some_and(|line| line.width() > 0) {
            lines.push(Line::default());
        }
        lines
    }
}

/// A prompt as it is shown in a transcript.
pub(crate) fn prompt_lines(prompt: &str, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let text = Destination::Terminal.text(prompt).into_owned();
    let mut lines = Vec::new();
    for (index, line) in text.trim_end().lines().enumerate() {
        let sign = if index == 0 { "› " } else { "  " };
        let line = Line::from(vec![
            Span::styled(sign, Style::new().fg(Color::Cyan)),
            Span::styled(expand_tabs(line), bold),
        ]);
        lines.extend(wrap(&line, width, 2));
    }
    lines
}

/// The text of a message; images are named.
pub(crate) fn text_of(content: &[InputBlock]) -> String {
    let texts = content.iter().map(|block| match block {
        InputBlock::Text(text) => text.text.as_str(),
        InputBlock::Image(_) => "[an image]",
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn any_text_of(block: &AssistantBlock, is_found: &mut dyn FnMut(&str) -> bool) -> bool {
    match block {
        AssistantBlock::Thinking(block) => is_found(&block.thinking),
        AssistantBlock::Text(_) => is_found(block.as_text().unwrap_or_default()),
        AssistantBlock::ToolCall(call) => {
            let arguments = call.arguments.object().map_or("", |json| json.as_str());
            is_found(&tool_call_title(call)) || is_found(arguments)
        }
        AssistantBlock::Opaque(_) => false,
    }
}

fn block_lines(block: &AssistantBlock, width: usize) -> Vec<Line<'static>> {
    match block {
        AssistantBlock::Thinking(block) => {
            let style = DIM.add_modifier(Modifier::ITALIC);
            let text = Destination::Terminal.text(&block.thinking).into_owned();
            let lines = text.lines().flat_map(|line| {
                wrap(&Line::styled(format!("∴ {}", expand_tabs(line)), style), width, 2)
            });
            lines.chain([Line::default()]).collect()
        }
        AssistantBlock::Text(_) => {
            let text = block.as_text().unwrap_or_default();
            let mut lines = markdown::lines(&Destination::Terminal.text(text), width);
            lines.push(Line::default());
            lines
        }
        AssistantBlock::ToolCall(call) => {
            let title = Style::new().fg(Color::Cyan);
            let mut lines =
                wrap(&Line::styled(format!("→ {}", tool_call_title(call)), title), width, 2);
            let arguments = call.arguments.object().map_or("", |json| json.as_str());
            for line in call_argument_lines(arguments, Colors::On) {
                let line = sgr::decode(&format!("  │ {}", expand_tabs(&line)));
                lines.extend(wrap(&line, width, 4));
            }
            lines.push(Line::default());
            lines
        }
        AssistantBlock::Opaque(_) => Vec::new(),
    }
}

fn result_lines(result: &ToolResultMessage, width: usize) -> Vec<Line<'static>> {
    let text = text_of(&result.content);
    let name = one_line(&result.tool_name);
    let (title, color) = if result.is_error {
        (format!("✗ {name}"), Color::Red)
    } else {
        (format!("✓ {name}, {}", line_count(&text)), Color::Green)
    };
    let mut lines = wrap(&Line::styled(title, Style::new().fg(color)), width, 2);
    let first = text.lines().position(|line| line.starts_with("@@")).unwrap_or(usize::MAX);
    for (index, line) in text.lines().enumerate() {
        let shown = expand_tabs(&Destination::Terminal.text(line));
        let style = match line.as_bytes().first() {
            Some(b'+') if index > first => Style::new().fg(Color::Green),
            Some(b'-') if index > first => Style::new().fg(Color::Red),
            Some(_) | None => DIM,
        };
        let line = Line::from(vec![Span::styled("  │ ", DIM), Span::styled(shown, style)]);
        lines.extend(wrap(&line, width, 4));
    }
    lines
}
