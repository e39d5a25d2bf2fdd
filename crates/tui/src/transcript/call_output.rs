//! The last lines of output of the calls that run, each on its own.

use std::collections::VecDeque;

use antiphon_core::{AssistantMessage, ToolCallBlock, ToolCallId};
use antiphon_view::display::Destination;
use antiphon_view::tool_call_title;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::markdown::expand_tabs;
use crate::wrap::wrap;

/// Lines of a call that are kept, and shown while it runs alone.
const LINES_MAX: usize = 4;

/// Lines of each call that are shown while several run.
const SHARED_LINES_MAX: usize = 2;

/// Calls whose output is shown at a time. Of more, the first ones are.
const CALLS_MAX: usize = 4;

/// The output of the calls of one answer.
#[derive(Default)]
pub(crate) struct CallOutput {
    calls: Vec<Call>,
}

struct Call {
    id: ToolCallId,
    title: String,
    lines: VecDeque<String>,
}

impl CallOutput {
    /// The calls of this answer run from now on.
    pub(crate) fn begin(&mut self, answer: &AssistantMessage) {
        let call = |call: &ToolCallBlock| Call {
            id: call.id.clone(),
            title: tool_call_title(call),
            lines: VecDeque::new(),
        };
        self.calls = answer.tool_calls().map(call).collect();
    }

    /// A call wrote more. A call of no answer that was seen is shown without its title.
    pub(crate) fn add(&mut self, id: &ToolCallId, text: &str) {
        let known = self.calls.iter().position(|call| call.id == *id);
        let index = known.unwrap_or_else(|| {
            self.calls.push(Call { id: id.clone(), title: String::new(), lines: VecDeque::new() });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(index) else { return };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            call.lines.push_back(Destination::Terminal.text(line).into_owned());
        }
        while call.lines.len() > LINES_MAX {
            call.lines.pop_front();
        }
    }

    /// A call has its result.
    pub(crate) fn end(&mut self, id: &ToolCallId) {
        self.calls.retain(|call| call.id != *id);
    }

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
    }

    /// The lines that are shown while the calls run.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line<'static>> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let writing: Vec<&Call> = self.calls.iter().filter(|call| !call.lines.is_empty()).collect();
        let one_row = |text: String| {
            let line = Line::styled(text, dim);
            wrap(&line, width, 4).into_iter().take(1)
        };
        let mut rows = Vec::new();
        let shown = if writing.len() > 1 { SHARED_LINES_MAX } else { LINES_MAX };
        for call in writing.iter().take(CALLS_MAX) {
            if writing.len() > 1 {
                rows.extend(one_row(format!("  {}", call.title)));
            }
            let first = call.lines.len().saturating_sub(shown);
            for line in call.lines.iter().skip(first) {
                rows.extend(one_row(format!("  │ {}", expand_tabs(line))));
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(output: &CallOutput) -> Vec<String> {
        output.lines(40).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn calls_that_run_beside_each_other_have_their_own_lines() {
        let (one, other) = (ToolCallId::parse("c1").unwrap(), ToolCallId::parse("c2").unwrap());
        let mut output = CallOutput::default();
        output.add(&one, "1\n2\n3\n4\n5\n");
        assert_eq!(rows(&output), ["  │ 2", "  │ 3", "  │ 4", "  │ 5"]);
        output.add(&other, "a\n");
        assert_eq!(rows(&output), ["", "  │ 4", "  │ 5", "", "  │ a"]);
        output.end(&one);
        assert_eq!(rows(&output), ["  │ a"]);
    }
}
