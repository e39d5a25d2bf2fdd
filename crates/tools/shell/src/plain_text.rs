//! Output of programs as a person would see it at the end: without colors, with lines that were
//! overwritten as they were left, and without control characters.
//!
//! It is fed in pieces of any size and keeps at most one line. A sequence that does not end where
//! one should ends anyway, so nothing can make the rest of the output disappear.

/// Longest line that can still be overwritten, in characters; what is longer goes out in pieces.
pub(crate) const LINE_CHARS_MAX: usize = 8 * 1024;

/// Furthest column a cursor can be sent to past the end of a line.
const COLUMN_MAX: usize = 1000;

/// Longest sequence that sets a color or moves the cursor, in bytes.
const CONTROL_BYTES_MAX: usize = 64;

/// Longest text within a sequence (a title, a link), in bytes.
const STRING_BYTES_MAX: usize = 4096;

/// Makes plain text of what a program wrote.
#[derive(Debug, Default)]
pub(crate) struct PlainText {
    line: Vec<char>,
    column: usize,
    state: State,
    /// The beginning of a character whose rest has not arrived.
    begun: Vec<u8>,
}

/// Where in a sequence we are.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// One more byte follows: a character set.
    Designation,
    Control(Vec<u8>),
    /// A text up to its end, and whether an escape has just been seen in it.
    String {
        bytes: usize,
        escape: bool,
    },
}

impl PlainText {
    /// Takes the next piece; lines that are complete go to `out`.
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut String) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if self.state == State::Ground && self.begun.is_empty() {
                let (text, after) = rest.split_at(text_length(rest));
                if !text.is_empty() {
                    self.text(text, out);
                    rest = after;
                    continue;
                }
            }
            self.byte(*first, out);
            rest = rest.get(1..).unwrap_or_default();
        }
    }

    /// The line that is not complete yet.
    pub(crate) fn pending(&self) -> String {
        self.line.iter().collect()
    }

    /// Whether there is one.
    pub(crate) fn has_pending(&self) -> bool {
        !self.line.is_empty()
    }

    /// Nothing more will come: the last line goes out as it is.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.begun).is_empty() {
            self.put(char::REPLACEMENT_CHARACTER, out);
        }
        out.extend(self.line.drain(..));
        self.column = 0;
    }

    /// Text without control characters but line breaks and tabs.
    fn text(&mut self, text: &[u8], out: &mut String) {
        let begun = incomplete(text);
        let (whole, begun) = text.split_at(text.len() - begun);
        for chunk in whole.utf8_chunks() {
            self.chars(chunk.valid(), out);
            if !chunk.invalid().is_empty() {
                self.put(char::REPLACEMENT_CHARACTER, out);
            }
        }
        self.begun.extend(begun);
    }

    fn chars(&mut self, text: &str, out: &mut String) {
        let is_plain = text.is_ascii() || !text.chars().any(is_second_control);
        let mut rest = text;
        while !rest.is_empty() {
            // Lines that arrive whole are not overwritten any more, and most arrive whole.
            if is_plain && self.line.is_empty() && self.column == 0 {
                let (lines, last) = rest.split_at(rest.rfind('\n').map_or(0, |end| end + 1));
                out.push_str(lines);
                if last.len() >= LINE_CHARS_MAX {
                    out.push_str(last);
                } else {
                    last.chars().for_each(|char| self.put(char, out));
                }
                return;
            }
            let (line, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
            for char in line.chars().filter(|char| !char.is_control() || *char == '\t') {
                self.put(char, out);
            }
            if line.ends_with('\n') {
                self.end_line(out);
            }
            rest = after;
        }
    }

    fn byte(&mut self, byte: u8, out: &mut String) {
        if !self.begun.is_empty() {
            return self.continue_char(byte, out);
        }
        match std::mem::take(&mut self.state) {
            State::Ground => self.control(byte, out),
            State::Designation => {}
            State::Control(mut bytes) => match byte {
                0x40..=0x7e => self.move_cursor(&bytes, byte),
                0x20..=0x3f if bytes.len() < CONTROL_BYTES_MAX => {
                    bytes.push(byte);
                    self.state = State::Control(bytes);
                }
                _ => self.again(byte, out),
            },
            State::String { escape: true, .. } if byte == b'\\' => {}
            State::Escape | State::String { escape: true, .. } => self.escape(byte, out),
            State::String { bytes, escape: false } => match byte {
                0x07 => {}
                b'\n' => self.again(byte, out),
                _ if bytes >= STRING_BYTES_MAX => self.again(byte, out),
                0x1b => self.state = State::String { bytes, escape: true },
                _ => self.state = State::String { bytes: bytes + 1, escape: false },
            },
        }
    }

    /// A byte that does not belong to the sequence it came in.
    fn again(&mut self, byte: u8, out: &mut String) {
        self.state = State::Ground;
        self.take(&[byte], out);
    }

    fn continue_char(&mut self, byte: u8, out: &mut String) {
        if !(0x80..=0xbf).contains(&byte) {
            self.begun.clear();
            self.put(char::REPLACEMENT_CHARACTER, out);
            return self.take(&[byte], out);
        }
        let mut text = std::mem::take(&mut self.begun);
        text.push(byte);
        self.text(&text, out);
    }

    fn control(&mut self, byte: u8, out: &mut String) {
        match byte {
            0x1b => self.state = State::Escape,
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            0x0b | 0x0c => self.end_line(out),
            _ => {}
        }
    }

    fn escape(&mut self, byte: u8, out: &mut String) {
        match byte {
            b'[' => self.state = State::Control(Vec::new()),
            b']' | b'P' | b'X' | b'^' | b'_' => {
                self.state = State::String { bytes: 0, escape: false };
            }
            b' '..=b'/' => self.state = State::Designation,
            0x1b => self.state = State::Escape,
            0x30..=0x7e => {}
            _ => self.again(byte, out),
        }
    }

    /// Only what happens within a line.
    fn move_cursor(&mut self, parameters: &[u8], action: u8) {
        let digits: String = parameters
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| *byte as char)
            .collect();
        let number = digits.parse::<usize>().ok();
        let distance = number.unwrap_or(1).clamp(1, COLUMN_MAX);
        match action {
            b'K' => match number.unwrap_or(0) {
                0 => self.line.truncate(self.column),
                1 => {
                    let end = self.line.len().min(self.column + 1);
                    if let Some(erased) = self.line.get_mut(..end) {
                        erased.fill(' ');
                    }
                }
                _ => self.line.clear(),
            },
            b'G' | b'`' => self.column = distance - 1,
            b'C' => self.column = (self.column + distance).min(LINE_CHARS_MAX),
            b'D' => self.column = self.column.saturating_sub(distance),
            b'P' => {
                let end = self.line.len().min(self.column + distance);
                if self.column < end {
                    self.line.drain(self.column..end);
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, char: char, out: &mut String) {
        if self.line.len() < self.column {
            self.line.resize(self.column, ' ');
        }
        match self.line.get_mut(self.column) {
            Some(there) => *there = char,
            None => self.line.push(char),
        }
        self.column += 1;
        if self.line.len() >= LINE_CHARS_MAX {
            out.extend(self.line.drain(..));
            self.column = 0;
        }
    }

    fn end_line(&mut self, out: &mut String) {
        out.extend(self.line.drain(..));
        out.push('\n');
        self.column = 0;
    }
}

/// How many bytes at the beginning are text. Every byte of every command comes by here.
fn text_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while length < bytes.len() && matches!(bytes[length], b'\n' | b'\t' | 0x20..=0x7e | 0x80..) {
        length += 1;
    }
    length
}

/// Control characters beyond ASCII, which the bytes of ordinary text do not tell apart.
fn is_second_control(char: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&char)
}

/// How many bytes at the end are the beginning of a character.
fn incomplete(text: &[u8]) -> usize {
    let could_go_on = |count: &usize| {
        let end = text.len().checked_sub(*count).and_then(|start| text.get(start..));
        let begins = |end: &[u8]| end.first().is_some_and(|first| *first >= 0xc0);
        let cut = |end| std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none());
        end.is_some_and(|end| begins(end) && cut(end))
    };
    (1..=3).find(could_go_on).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> String {
        let (mut text, mut out) = (PlainText::default(), String::new());
        text.take(bytes, &mut out);
        text.finish(&mut out);
        // However it arrives, it is the same.
        let (mut text, mut piecewise) = (PlainText::default(), String::new());
        for byte in bytes {
            text.take(&[*byte], &mut piecewise);
        }
        text.finish(&mut piecewise);
        assert_eq!(piecewise, out);
        out
    }

    #[test]
    fn what_a_person_would_see_is_left() {
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
    fn a_line_without_an_end_does_not_pile_up() {
        let (mut text, mut out) = (PlainText::default(), String::new());
        for _ in 0..100 {
            text.take(&[b'x'; 10_000], &mut out);
            assert!(text.line.len() <= LINE_CHARS_MAX);
        }
        text.finish(&mut out);
        assert_eq!(out.len(), 1_000_000);
    }

    #[test]
    fn a_cursor_sent_far_away_makes_no_line_of_blanks() {
        assert!(plain(b"\x1b[999999999Cx\x1b[999999999Gy\n").len() < 2100);
    }
}
