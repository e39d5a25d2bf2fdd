//! The answer of a model as it arrives. Its complete blocks become finished lines; the last block is still live.
//!
//! Only the text of the live block is parsed again when more arrives, so that the cost does not grow with the answer.

use ratatui_core::text::Line;

use crate::markdown;

/// Bytes of a block that is drawn as it arrives. A longer one is finished in parts.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// The text of an answer that is not finished.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    /// A block was finished before: a blank line divides it from the next.
    has_finished: bool,
}

impl Answer {
    /// Adds text. Returns the lines of the blocks that are complete now.
    pub(crate) fn push(&mut self, text: &str, width: usize) -> Vec<Line<'static>> {
        self.text.push_str(text);
        // A block can only be complete behind a line break.
        if !text.contains('\n') && self.text.len() < BLOCK_BYTES_MAX {
            return Vec::new();
        }
        // The last line may yet become part of the block before it: a row of a table, an item.
        let whole_lines = self.text.rfind('\n').map_or(0, |at| at + 1);
        let mut end = markdown::last_block(&self.text[..whole_lines]);
        if end == 0 && self.text.len() >= BLOCK_BYTES_MAX {
            end = self.text.rfind('\n').map_or(self.text.len(), |at| at + 1);
        }
        self.finish_until(end, width)
    }

    /// The lines of the rest: the answer is complete, or something else follows.
    pub(crate) fn finish(&mut self, width: usize) -> Vec<Line<'static>> {
        let lines = self.finish_until(self.text.len(), width);
        self.has_finished = false;
        lines
    }

    /// The lines of the live block.
    pub(crate) fn live_lines(&self, width: usize) -> Vec<Line<'static>> {
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
        let text = "# A title\n\nSome *text* that goes on.\n\n- one\n- two\n\n```rust\nfn main() {}\n\n// end\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nÜber das Ende.";
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
