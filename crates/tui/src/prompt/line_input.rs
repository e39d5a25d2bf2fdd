//! A line while a person types it, from the bytes of a terminal that sends every key at once and echoes none.
//!
//! Keys edit it as in a shell. Escape sequences of other keys do nothing, and no byte of them becomes text.

use std::collections::VecDeque;
use std::time::Instant;

use vte::{Params, Parser, Perform};

use crate::composer::{Composer, Motion};

/// Bytes of a line. More are not taken.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What typed bytes led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// The line has another text, or another cursor.
    Changed,
    /// The line is sent.
    Line(TypedLine),
    /// The line is too long: the rest of it was not taken.
    TooLong,
    /// No line follows.
    End,
}

/// A line that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedLine {
    /// Its text, without a line break.
    pub text: String,
    /// When its first key was pressed.
    pub began: Instant,
}

/// The line that is typed.
#[derive(Default)]
pub struct LineInput {
    parser: Parser,
    line: Line,
}

#[derive(Default)]
struct Line {
    composer: Composer,
    began: Option<Instant>,
    /// When the bytes that are read now were typed.
    now: Option<Instant>,
    is_too_long: bool,
    /// The next character belongs to a key such as F1.
    skips: bool,
    typed: VecDeque<Typed>,
}

impl LineInput {
    /// Reads bytes that were typed at a time.
    pub fn feed(&mut self, bytes: &[u8], at: Instant) -> VecDeque<Typed> {
        self.line.now = Some(at);
        self.parser.advance(&mut self.line, bytes);
        let mut typed = std::mem::take(&mut self.line.typed);
        typed.push_back(Typed::Changed);
        typed
    }

    /// The line is not sent after all: it is typed again, before what was typed since.
    pub fn take_back(&mut self, line: TypedLine) {
        let rest = self.line.composer.take();
        self.line.composer.set(&(line.text + &rest));
        self.line.began = Some(line.began);
    }

    /// Whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.line.composer.is_empty()
    }

    pub(crate) fn composer(&self) -> &Composer {
        &self.line.composer
    }
}

impl Line {
    fn edit(&mut self, change: impl FnOnce(&mut Composer)) {
        change(&mut self.composer);
        if self.composer.is_empty() {
            (self.began, self.is_too_long) = (None, false);
        }
    }

    fn began(&mut self) -> Instant {
        *self.began.get_or_insert(self.now.unwrap_or_else(Instant::now))
    }

    fn send(&mut self) {
        let began = self.began();
        let text = self.composer.take();
        (self.began, self.is_too_long) = (None, false);
        self.typed.push_back(Typed::Line(TypedLine { text, began }));
    }
}

impl Perform for Line {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.skips) {
            return;
        }
        // The parser takes the key Backspace for a character.
        if c == '\u{7f}' {
            return self.edit(|line| line.remove(Motion::Left));
        }
        if self.composer.text().len() + c.len_utf8() > LINE_BYTES_MAX {
            if !std::mem::replace(&mut self.is_too_long, true) {
                self.typed.push_back(Typed::TooLong);
            }
            return;
        }
        self.began();
        self.composer.insert(c.encode_utf8(&mut [0; 4]));
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' | b'\n' => self.send(),
            b'\t' => self.print(' '),
            0x01 => self.edit(|line| line.go(Motion::LineStart)),
            0x02 => self.edit(|line| line.go(Motion::Left)),
            0x04 if self.composer.is_empty() => self.typed.push_back(Typed::End),
            0x04 => self.edit(|line| line.remove(Motion::Right)),
            0x05 => self.edit(|line| line.go(Motion::LineEnd)),
            0x06 => self.edit(|line| line.go(Motion::Right)),
            0x08 | 0x7f => self.edit(|line| line.remove(Motion::Left)),
            0x0b => self.edit(|line| line.remove(Motion::LineEnd)),
            0x15 => self.edit(|line| line.remove(Motion::LineStart)),
            0x17 => self.edit(|line| line.remove(Motion::WordLeft)),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, byte: u8) {
        self.skips = byte == b'O';
    }

    fn csi_dispatch(&mut self, params: &Params, _intermediates: &[u8], _ignore: bool, key: char) {
        let first = params.iter().next().and_then(|values| values.first().copied());
        match (key, first) {
            ('C', _) => self.edit(|line| line.go(Motion::Right)),
            ('D', _) => self.edit(|line| line.go(Motion::Left)),
            ('H', _) | ('~', Some(1 | 7)) => self.edit(|line| line.go(Motion::LineStart)),
            ('F', _) | ('~', Some(4 | 8)) => self.edit(|line| line.go(Motion::LineEnd)),
            ('~', Some(3)) => self.edit(|line| line.remove(Motion::Right)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input: &mut LineInput, bytes: &[u8]) -> Vec<String> {
        let typed = input.feed(bytes, Instant::now());
        let lines = typed.into_iter().filter_map(|typed| match typed {
            Typed::Line(line) => Some(line.text),
            Typed::Changed | Typed::TooLong | Typed::End => None,
        });
        lines.collect()
    }

    #[test]
    fn keys_edit_the_line_and_enter_sends_it() {
        let mut input = LineInput::default();
        assert_eq!(
            typed(&mut input, "onf\x7fe \x1b[D\x1b[D日\x1b[F!\rnext".as_bytes()),
            ["on日e !"]
        );
        assert_eq!(input.composer().text(), "next");
        assert_eq!(typed(&mut input, b"\x15\n"), [""]);
    }

    #[test]
    fn characters_arrive_whole_and_other_keys_are_no_text() {
        let mut input = LineInput::default();
        let bytes = "é\x1b[1;5A\x1bOP\x1b[15~z".as_bytes();
        for byte in bytes {
            typed(&mut input, &[*byte]);
        }
        assert_eq!(input.composer().text(), "éz");
    }

    #[test]
    fn a_line_has_the_time_of_its_first_key() {
        let mut input = LineInput::default();
        let first = Instant::now();
        input.feed(b"y", first);
        let second = first + std::time::Duration::from_secs(5);
        let sent = Typed::Line(TypedLine { text: "y".to_owned(), began: first });
        assert_eq!(input.feed(b"\n", second)[0], sent);
        input.feed(b"y\x7f", first);
        let sent = Typed::Line(TypedLine { text: "n".to_owned(), began: second });
        assert_eq!(input.feed(b"n\n", second)[0], sent);
    }

    #[test]
    fn a_line_is_bounded_and_says_so_once() {
        let mut input = LineInput::default();
        let typed = input.feed(&vec![b'x'; 2 * LINE_BYTES_MAX], Instant::now());
        assert_eq!(typed, [Typed::TooLong, Typed::Changed]);
        assert_eq!(input.composer().text().len(), LINE_BYTES_MAX);
    }
}
