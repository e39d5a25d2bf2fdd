//! Plain text of what a program wrote to a terminal: without colors and control characters, and with
//! overwritten lines as they were last.
//!
//! [`vte`] parses the escape sequences; this module applies what happens within a line. Input arrives
//! in pieces of any size, and at most one line is held. Every sequence is bounded: a line break ends it,
//! and so does its length. An unfinished sequence cannot hide the output after it.

use vte::{Params, Parser, Perform};

/// Longest line that can still be overwritten, in characters. A longer line is passed on in pieces.
pub const LINE_CHARS_MAX: usize = 8 * 1024;

/// Furthest column a cursor can be sent to past the end of a line.
const COLUMN_MAX: usize = 1000;

/// Longest sequence that sets a color or moves the cursor, in bytes.
const CONTROL_BYTES_MAX: usize = 64;

/// Longest text within a sequence (a title, a link), in bytes.
const STRING_BYTES_MAX: usize = 4096;

/// Ends any sequence and any incomplete character; shows nothing itself.
const CANCEL: u8 = 0x18;

const ESCAPE: u8 = 0x1b;

const BELL: u8 = 0x07;

/// Turns the output of a program into plain text.
#[derive(Default)]
pub struct PlainText {
    parser: Parser,
    line: Line,
    sequence: Option<Sequence>,
    /// Whether the parser may hold the start of a character.
    partial: bool,
}

/// An escape sequence that has not ended.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    kind: Kind,
    /// Bytes after the introducer.
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its introducer is not complete.
    Escape,
    /// Parameters and one action.
    Control,
    /// A text up to a terminator.
    String,
}

/// The line that is not complete.
#[derive(Debug, Default)]
struct Line {
    chars: Vec<char>,
    column: usize,
}

/// Applies parsed output to a line. Lines that are complete go to `out`.
struct LineWriter<'a> {
    line: &'a mut Line,
    out: &'a mut String,
    /// Whether a sequence ended.
    ended: bool,
}

impl PlainText {
    /// Takes the next piece. Appends complete lines to `out`.
    pub fn take(&mut self, bytes: &[u8], out: &mut String) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            rest = match self.sequence {
                Some(sequence) if sequence.is_ended_by(*first) => {
                    self.cancel(out);
                    if *first == BELL { &rest[1..] } else { rest }
                }
                Some(sequence) => {
                    self.continue_sequence(sequence, *first, out);
                    &rest[1..]
                }
                None => self.take_text(rest, out),
            };
        }
    }

    /// The line that is not complete yet.
    pub fn pending(&self) -> String {
        self.line.chars.iter().collect()
    }

    /// Whether a line is not complete yet.
    pub fn has_pending(&self) -> bool {
        !self.line.chars.is_empty()
    }

    /// Ends the output. Appends the last line to `out`, without a line break.
    pub fn finish(&mut self, out: &mut String) {
        self.cancel(out);
        out.extend(self.line.chars.drain(..));
        self.line.column = 0;
    }

    /// Takes text up to a line break or an escape, including it. Returns the rest.
    fn take_text<'a>(&mut self, bytes: &'a [u8], out: &mut String) -> &'a [u8] {
        // Most lines arrive complete and without control characters: they need no parser.
        if !self.partial && self.line.is_empty() {
            let lines = plain_lines(bytes);
            if !lines.is_empty() {
                out.push_str(lines);
                return &bytes[lines.len()..];
            }
        }
        let end = memchr::memchr2(b'\n', ESCAPE, bytes).unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at(end);
        if !text.is_empty() {
            self.parse(text, out);
            self.partial = text.last().is_some_and(|last| !last.is_ascii());
        }
        match rest.split_first() {
            Some((&b'\n', rest)) => {
                self.cancel(out);
                self.line.end(out);
                rest
            }
            Some((escape, rest)) => {
                self.cancel(out);
                self.parse(&[*escape], out);
                self.sequence = Some(Sequence { kind: Kind::Escape, bytes: 0 });
                rest
            }
            None => rest,
        }
    }

    fn continue_sequence(&mut self, sequence: Sequence, byte: u8, out: &mut String) {
        let ended = self.parse(&[byte], out);
        self.sequence = if byte == ESCAPE {
            Some(Sequence { kind: Kind::Escape, bytes: 0 })
        } else if ended {
            None
        } else {
            Some(sequence.after(byte))
        };
    }

    /// Ends an open sequence. An incomplete character becomes a replacement character.
    fn cancel(&mut self, out: &mut String) {
        if self.partial || self.sequence.is_some() {
            self.parse(&[CANCEL], out);
        }
        self.partial = false;
        self.sequence = None;
    }

    /// Returns whether a sequence ended.
    fn parse(&mut self, bytes: &[u8], out: &mut String) -> bool {
        let mut writer = LineWriter { line: &mut self.line, out, ended: false };
        self.parser.advance(&mut writer, bytes);
        writer.ended
    }
}

impl std::fmt::Debug for PlainText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainText").field("line", &self.line).finish_non_exhaustive()
    }
}

impl Sequence {
    /// Whether `byte` ends the sequence before its own end.
    fn is_ended_by(self, byte: u8) -> bool {
        match self.kind {
            Kind::Escape | Kind::Control => {
                !matches!(byte, 0x20..=0x7e | ESCAPE)
                    || (self.bytes >= CONTROL_BYTES_MAX && byte < 0x40)
            }
            Kind::String => matches!(byte, b'\n' | BELL) || self.bytes >= STRING_BYTES_MAX,
        }
    }

    fn after(self, byte: u8) -> Self {
        match (self.kind, self.bytes, byte) {
            (Kind::Escape, 0, b'[') => Self { kind: Kind::Control, bytes: 0 },
            (Kind::Escape, 0, b']' | b'P' | b'X' | b'^' | b'_') => {
                Self { kind: Kind::String, bytes: 0 }
            }
            (kind, bytes, _) => Self { kind, bytes: bytes + 1 },
        }
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.chars.is_empty() && self.column == 0
    }

    fn put(&mut self, char: char, out: &mut String) {
        if self.chars.len() < self.column {
            self.chars.resize(self.column, ' ');
        }
        match self.chars.get_mut(self.column) {
            Some(overwritten) => *overwritten = char,
            None => self.chars.push(char),
        }
        self.column += 1;
        if self.chars.len() >= LINE_CHARS_MAX {
            out.extend(self.chars.drain(..));
            self.column = 0;
        }
    }

    fn end(&mut self, out: &mut String) {
        out.extend(self.chars.drain(..));
        out.push('\n');
        self.column = 0;
    }

    /// Erases a part of the line, as the parameter of `EL` says.
    fn erase(&mut self, part: u16) {
        match part {
            0 => self.chars.truncate(self.column),
            1 => {
                let end = self.chars.len().min(self.column + 1);
                self.chars[..end].fill(' ');
            }
            _ => self.chars.clear(),
        }
    }

    /// Deletes characters at the cursor.
    fn delete(&mut self, count: usize) {
        let end = self.chars.len().min(self.column + count);
        if self.column < end {
            self.chars.drain(self.column..end);
        }
    }
}

impl Perform for LineWriter<'_> {
    fn print(&mut self, char: char) {
        self.ended = true;
        if !char.is_control() {
            self.line.put(char, self.out);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\t' => self.line.put('\t', self.out),
            b'\r' => self.line.column = 0,
            0x08 => self.line.column = self.line.column.saturating_sub(1),
            0x0b | 0x0c => self.line.end(self.out),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        self.ended = true;
        let number = params.iter().next().and_then(|param| param.first()).copied().unwrap_or(0);
        let distance = usize::from(number).clamp(1, COLUMN_MAX);
        let line = &mut *self.line;
        match action {
            'K' => line.erase(number),
            'G' | '`' => line.column = distance - 1,
            'C' => line.column = (line.column + distance).min(LINE_CHARS_MAX),
            'D' => line.column = line.column.saturating_sub(distance),
            'P' => line.delete(distance),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.ended = true;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.ended = true;
    }

    fn unhook(&mut self) {
        self.ended = true;
    }
}

/// The complete lines at the start of `bytes` that have no control character but tabs.
fn plain_lines(bytes: &[u8]) -> &str {
    let is_text = |byte: &u8| matches!(byte, b'\n' | b'\t' | 0x20..=0x7e | 0x80..);
    let length = bytes.iter().position(|byte| !is_text(byte)).unwrap_or(bytes.len());
    let text = bytes[..length].utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let lines = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    // Control characters beyond ASCII are not distinguished by their bytes.
    let is_second_control = |char: char| ('\u{80}'..='\u{9f}').contains(&char);
    match lines.find(is_second_control) {
        Some(control) if !lines.is_ascii() => {
            &lines[..lines[..control].rfind('\n').map_or(0, |end| end + 1)]
        }
        Some(_) | None => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> String {
        let (mut text, mut out) = (PlainText::default(), String::new());
        text.take(bytes, &mut out);
        text.finish(&mut out);
        // The text does not depend on how the bytes are split.
        let (mut text, mut piecewise) = (PlainText::default(), String::new());
        for byte in bytes {
            text.take(&[*byte], &mut piecewise);
        }
        text.finish(&mut piecewise);
        assert_eq!(piecewise, out);
        out
    }

    #[test]
    fn the_text_that_a_person_would_see_is_left() {
        let cases: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"plain\n\ttext", "plain\n\ttext"),
            (b"\x1b[31;1mred\x1b[0m", "red"),
            (b"10%\r20%\r100%\n", "100%\n"),
            (b"long line\rshort\n", "shortline\n"),
            (b"long line\r\x1b[Kshort\n", "short\n"),
            (b"windows\r\nlines\r\n", "windows\nlines\n"),
            (b"abc\x08\x08X\n", "aXc\n"),
            (b"bell\x07 null\x00 delete\x7f\n", "bell null delete\n"),
            (b"\x1b]0;a title\x07after", "after"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1bPdevice\x1b\\after", "after"),
            (b"\x1b(Bset", "set"),
            (b"\x1b7saved\x1b8", "saved"),
            (b"a\x1b[5Cb", "a     b"),
            (b"\x1b[2Ca\nb\n", "  a\nb\n"),
            (b"a\n\x1b[2Cb\nc\n", "a\n  b\nc\n"),
            (b"abc\x1b[2Dx", "axc"),
            (b"abc\x1b[1Gx", "xbc"),
            (b"abcdef\x1b[4G\x1b[2Pz", "abcz"),
            (b"abc\x1b[1Kd", "   d"),
            (b"abc\x1b[2K\rd", "d"),
            ("größe → ✓\n".as_bytes(), "größe → ✓\n"),
            (b"\xff\xfe bad \xc3\n", "\u{fffd}\u{fffd} bad \u{fffd}\n"),
            (b"half \xe2\x82", "half \u{fffd}"),
            (b"c1 \xc2\x9b31m", "c1 31m"),
            (b"\x1b\x1b[1mtwice", "twice"),
            ("\x1bé not hidden".as_bytes(), "é not hidden"),
            (b"\x1b[3\rafter", "after"),
            (b"\x1b_a string\x07after", "after"),
            (b"\x1b]0;title\x1b[1mbold", "bold"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(plain(bytes), *expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing_after_it() {
        assert_eq!(plain(b"\x1b]never ended\nvisible\n"), "\nvisible\n");
        assert_eq!(plain(b"\x1b[12;\nvisible\n"), "\nvisible\n");
        let long = [b"\x1bP".as_slice(), &[b'x'; STRING_BYTES_MAX + 10], b"visible"].concat();
        assert!(plain(&long).ends_with("visible"));
        let long = [b"\x1b[".as_slice(), &[b'1'; CONTROL_BYTES_MAX + 1], b"visible"].concat();
        assert!(plain(&long).ends_with("visible"));
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let (mut text, mut out) = (PlainText::default(), String::new());
        for _ in 0..100 {
            text.take(&[b'x'; 10_000], &mut out);
            assert!(text.line.chars.len() <= LINE_CHARS_MAX);
        }
        text.finish(&mut out);
        assert_eq!(out.len(), 1_000_000);
    }

    #[test]
    fn a_cursor_sent_far_away_adds_few_blanks() {
        assert!(plain(b"\x1b[999999999Cx\x1b[999999999Gy\n").len() < 2100);
    }
}
