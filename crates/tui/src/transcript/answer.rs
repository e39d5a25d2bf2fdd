//! The answer of a model as it arrives. Its complete blocks become finished lines; the last block is still live.
//!
//! Only the text of the live block is parsed again when more arrives, so that the cost does not grow with the answer. A
//! line of code is finished as soon as it is complete, so that long code is not parsed again at all.

use ratatui_core::text::Line;

use crate::highlight::Highlighter;
use crate::markdown;
use crate::wrap::wrap;

/// Bytes of a block that is drawn as it arrives. A longer one is finished in parts.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// The text of an answer that is not finished.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    /// A block was finished before: a blank line divides it from the next.
    has_finished: bool,
    /// The code that the text is part of.
    code: Option<OpenCode>,
    /// The lines of the live block, with the width they were made for.
    live: Option<(usize, Vec<Line<'static>>)>,
}

/// Code between fences whose end has not arrived.
#[derive(Debug)]
struct OpenCode {
    fence: Fence,
    highlighter: Highlighter,
}

/// The line that begins code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    character: char,
    count: usize,
    /// Columns that the lines of the code may be indented by.
    indent: usize,
}

impl Answer {
    /// Adds text. Returns the lines of the blocks that are complete now.
    pub(crate) fn push(&mut self, text: &str, width: usize) -> Vec<Line<'static>> {
        self.text.push_str(text);
        self.live = None;
        // A block can only be complete behind a line break.
        if !text.contains('\n') && self.text.len() < BLOCK_BYTES_MAX {
            return Vec::new();
        }
        let mut lines = Vec::new();
        loop {
            lines.extend(self.complete_code(width));
            if self.code.is_some() {
                return lines;
            }
            // The last line may yet become part of the block before it: a row of a table, an item.
            let whole_lines = self.text.rfind('\n').map_or(0, |at| at + 1);
            let mut end = with_indent(&self.text, markdown::last_block(&self.text[..whole_lines]));
            if end == 0 && self.text.len() >= BLOCK_BYTES_MAX {
                end = if whole_lines == 0 { self.text.len() } else { whole_lines };
            }
            lines.extend(self.finish_until(end, width));
            if !self.begin_code(&mut lines, width) {
                return lines;
            }
        }
    }

    /// The lines of the rest: the answer is complete, or something else follows.
    pub(crate) fn finish(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = self.complete_code(width);
        if let Some(mut code) = self.code.take() {
            let rest = std::mem::take(&mut self.text);
            if !rest.is_empty() && !code.fence.is_closed_by(&rest) {
                lines.extend(code.line(&rest, width));
            }
        }
        lines.extend(self.finish_until(self.text.len(), width));
        (self.has_finished, self.live) = (false, None);
        lines
    }

    /// The lines of the live block.
    pub(crate) fn live_lines(&mut self, width: usize) -> Vec<Line<'static>> {
        match &self.live {
            Some((of_width, lines)) if *of_width == width => lines.clone(),
            Some(_) | None => {
                let lines = self.made_live(width);
                self.live = Some((width, lines.clone()));
                lines
            }
        }
    }

    fn made_live(&self, width: usize) -> Vec<Line<'static>> {
        if let Some(OpenCode { fence, highlighter }) = &self.code {
            let mut code = OpenCode { fence: *fence, highlighter: highlighter.clone() };
            return if self.text.is_empty() { Vec::new() } else { code.line(&self.text, width) };
        }
        let mut lines = markdown::lines(&self.text, width);
        if self.has_finished && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    /// Whether there is text that is not finished.
    pub(crate) fn is_live(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// Finishes the complete lines of the code that the text is part of, up to its end.
    fn complete_code(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut done = 0;
        while let Some(code) = &mut self.code
            && let Some(length) = self.text[done..].find('\n')
        {
            let line = &self.text[done..done + length];
            done += length + 1;
            if code.fence.is_closed_by(line) {
                self.code = None;
            } else {
                lines.extend(code.line(line, width));
            }
        }
        self.text.drain(..done);
        lines
    }

    /// Whether the text begins with the complete first line of code, which is taken.
    fn begin_code(&mut self, lines: &mut Vec<Line<'static>>, width: usize) -> bool {
        let Some(length) = self.text.find('\n') else { return false };
        let Some((fence, language)) = Fence::of(&self.text[..length]) else { return false };
        if std::mem::replace(&mut self.has_finished, true) {
            lines.push(Line::default());
        }
        if !language.is_empty() {
            lines.extend(wrap(&markdown::language_line(language), width, 0));
        }
        let highlighter = Highlighter::new(language);
        self.code = Some(OpenCode { fence, highlighter });
        self.text.drain(..=length);
        true
    }

    fn finish_until(&mut self, end: usize, width: usize) -> Vec<Line<'static>> {
        if end == 0 {
            return Vec::new();
        }
        let rest = self.text.split_off(end);
        let finished = std::mem::replace(&mut self.text, rest);
        let mut lines = markdown::lines(&finished, width);
        if lines.is_empty() {
            return lines;
        }
        if std::mem::replace(&mut self.has_finished, true) {
            lines.insert(0, Line::default());
        }
        lines
    }
}

/// Where the line of a block begins: blanks before it are its indentation.
fn with_indent(text: &str, block: usize) -> usize {
    text[..block].trim_end_matches(' ').len()
}

impl OpenCode {
    fn line(&mut self, line: &str, width: usize) -> Vec<Line<'static>> {
        let blanks = line.chars().take(self.fence.indent).take_while(|c| *c == ' ').count();
        let line = markdown::code_line(self.highlighter.line(&line[blanks..]));
        wrap(&line, width, 0)
    }
}

impl Fence {
    /// The fence that a line is, and the language behind it.
    fn of(line: &str) -> Option<(Self, &str)> {
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let character = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let language = rest.trim_start_matches(character);
        let count = rest.len() - language.len();
        let language = language.trim();
        let is_fence =
            indent < 4 && count >= 3 && !(character == '`' && language.contains(character));
        is_fence.then_some((Self { character, count, indent }, language))
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::of(line).is_some_and(|(fence, language)| {
            language.is_empty() && fence.character == self.character && fence.count >= self.count
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is finished when a text arrives in pieces of this many bytes.
    fn finished(text: &str, piece: usize) -> Vec<String> {
        let mut answer = Answer::default();
        let mut lines = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = piece.min(rest.len());
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            lines.extend(answer.push(&rest[..end], 40));
            rest = &rest[end..];
        }
        lines.extend(answer.finish(40));
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_lines_do_not_depend_on_the_pieces() {
        let text = "# A title\n\nSome *text* that goes on.\n\n- one\n- two\n\n```rust\nfn main() {}\n\n// end\n```\n  ~~~~\n  two\n~~~\n ```\n~~~~~\n- item\n  ```py\n  x\n  ```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nÜber das Ende.";
        let whole: Vec<String> =
            markdown::lines(text, 40).iter().map(ToString::to_string).collect();
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(finished(text, piece), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn complete_blocks_leave_the_live_part() {
        let mut answer = Answer::default();
        assert_eq!(answer.push("first block\n\nsecond line\nthird", 40).len(), 1);
        assert_eq!(answer.live_lines(40).len(), 2);
        assert_eq!(answer.finish(40).len(), 2);
        assert!(!answer.is_live());
    }
}
