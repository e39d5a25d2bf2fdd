//! What the model thinks: a few rows while it thinks, and one folded line in the transcript when it answers.

use std::time::Instant;

use antiphon_core::{AssistantBlock, AssistantMessage};
use antiphon_view::display::Destination;
use antiphon_view::text::{count, elapsed, one_line};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::markdown::expand_tabs;
use crate::wrap::wrap;

/// Rows that show the end of what the model thinks now.
const LIVE_ROWS: usize = 3;

/// Bytes of the end that those rows are made from.
const TAIL_BYTES: usize = 2 * 1024;

/// Characters of the folded line that are of the model.
const SHOWN_CHARS: usize = 60;

/// What the model thought since its last answer.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
    /// The beginning, for the folded line.
    first: String,
    /// The end, for the live rows.
    tail: String,
    words: u64,
    began: Option<Instant>,
    /// The answer that it belongs to.
    turn: u32,
}

impl Thinking {
    /// The answer is complete: its thinking, as the journal has it.
    pub(crate) fn complete(&mut self, answer: &AssistantMessage) {
        let mut thinking = Self { began: self.began, turn: self.turn, ..Self::default() };
        for block in &answer.content {
            if let AssistantBlock::Thinking(block) = block {
                thinking.add(&block.thinking);
            }
        }
        *self = thinking;
    }

    /// Adds what arrived. The answer before this one, if it was another, is left out.
    pub(crate) fn push(&mut self, turn: u32, text: &str) {
        if self.turn != turn {
            *self = Self { turn, ..Self::default() };
        }
        self.began.get_or_insert_with(Instant::now);
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        let text = Destination::Terminal.text(text);
        let continues = self.tail.ends_with(|c: char| !c.is_whitespace())
            && text.starts_with(|c: char| !c.is_whitespace());
        let words = text.split_whitespace().count() as u64;
        self.words += words.saturating_sub(u64::from(continues));
        let free = SHOWN_CHARS.saturating_sub(self.first.chars().count());
        self.first.extend(text.chars().take(free));
        self.tail.push_str(&text);
        if self.tail.len() > 2 * TAIL_BYTES {
            let mut from = self.tail.len() - TAIL_BYTES;
            while !self.tail.is_char_boundary(from) {
                from += 1;
            }
            self.tail.drain(..from);
        }
    }

    /// The folded line; `None` when nothing was thought. Nothing is left.
    pub(crate) fn fold(&mut self) -> Option<Line<'static>> {
        let Self { first, words, began, .. } = std::mem::take(self);
        if words == 0 {
            return None;
        }
        let took = began.map_or(String::new(), |began| format!(" {}", elapsed(began.elapsed())));
        let first = one_line(&first);
        let text = format!("∴ thought{took}, {}: {}… (Ctrl-T)", count(words, "word"), first.trim());
        Some(Line::styled(text, style()))
    }

    /// The end of what is thought now.
    pub(crate) fn live_lines(&self, width: usize) -> Vec<Line<'static>> {
        let text = self.tail.lines().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<Line<'static>> = text
            .flat_map(|line| {
                let line = Line::styled(format!("∴ {}", expand_tabs(line)), style());
                wrap(&line, width, 2)
            })
            .collect();
        lines.drain(..lines.len().saturating_sub(LIVE_ROWS));
        lines
    }
}

fn style() -> Style {
    Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_folded_to_one_line_with_its_number_of_words() {
        let mut thinking = Thinking::default();
        for piece in ["First I lo", "ok at ", "the\x1b[2J files.\n", "Then ", "the tests."] {
            thinking.push(0, piece);
        }
        let live: Vec<String> = thinking.live_lines(80).iter().map(ToString::to_string).collect();
        assert_eq!(live, [r"∴ First I look at the\u{1b}[2J files.", "∴ Then the tests."]);
        let folded = thinking.fold().unwrap().to_string();
        assert!(folded.starts_with("∴ thought "), "{folded}");
        assert!(folded.contains(", 9 words: First I look at"), "{folded}");
        assert!(thinking.fold().is_none());
    }

    #[test]
    fn the_thinking_of_the_next_answer_begins_anew() {
        let mut thinking = Thinking::default();
        thinking.push(0, "one two three");
        thinking.push(1, "four");
        assert!(thinking.fold().unwrap().to_string().contains(", 1 word: four"));
    }

    #[test]
    fn long_thinking_takes_few_rows_and_little_memory() {
        let mut thinking = Thinking::default();
        for _ in 0..10_000 {
            thinking.push(0, "日本語 words and more\n");
        }
        assert_eq!(thinking.live_lines(40).len(), LIVE_ROWS);
        assert!(thinking.tail.len() <= 2 * TAIL_BYTES + 64);
    }
}
