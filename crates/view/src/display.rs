//! Text on its way to a person: the one place that decides which characters reach a terminal or a pipe.
//!
//! | text                                    | on a terminal                                     | in a pipe                        |
//! |-----------------------------------------|---------------------------------------------------|----------------------------------|
//! | a name, a path, a command, a question   | [`escaped`]: whole, on one line                   | the same                         |
//! | of a model, a tool, an error            | control, direction and tag characters are escaped | control sequences are dropped    |
//! | JSON                                    | the same values: those characters as escapes of JSON | the same values               |
//!
//! A program that reads JSON gets the same values from both.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use antiphon_core::escape_for_terminal;
pub use antiphon_core::escaped;

/// Longest control sequence that is dropped, in characters. A longer one is text.
const CONTROL_CHARS_MAX: usize = 64;

/// Longest text within a sequence (a title, a link) that is dropped, in characters.
const STRING_CHARS_MAX: usize = 4096;

/// A path, escaped whole.
pub fn escaped_path(path: &Path) -> String {
    escaped(&path.to_string_lossy()).into_owned()
}

/// Where text is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A terminal, which acts on control characters.
    Terminal,
    /// A pipe or a file.
    Pipe,
}

impl Destination {
    /// The destination of a stream that is a terminal or not.
    pub fn of(is_terminal: bool) -> Self {
        if is_terminal { Self::Terminal } else { Self::Pipe }
    }

    /// Whole text of a model, a tool or an error. Line breaks and tabs stay.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        TextFilter::new(self).text(text)
    }

    /// Whole text with colors of our own, such as a line of the log. On a terminal colors stay, and nothing else
    /// that controls it.
    pub fn colored_text(self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, color, after)) = next_color(rest) {
            shown.push_str(&self.text(before));
            if self == Self::Terminal {
                shown.push_str(color);
            }
            rest = after;
        }
        shown.push_str(&self.text(rest));
        shown
    }

    /// JSON with the same values, which [`text`](Self::text) leaves as it is.
    pub fn json(self, json: &str) -> Cow<'_, str> {
        match self {
            Self::Terminal => escape_json(json, is_escaped_for_terminal),
            Self::Pipe => escape_json(json, is_dropped_in_pipe),
        }
    }
}

/// Text of a model as it arrives, in pieces of any size.
#[derive(Debug)]
pub struct TextFilter {
    destination: Destination,
    /// A sequence that has not ended. Only in a pipe.
    sequence: Option<Sequence>,
}

#[derive(Debug, Clone, Copy)]
struct Sequence {
    kind: Kind,
    /// Characters after the introducer.
    chars: usize,
}

/// A sequence after its first character.
const ESCAPE: Sequence = Sequence { kind: Kind::Escape, chars: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its introducer is not complete.
    Escape,
    /// Parameters and a final character.
    Control,
    /// A text up to a terminator.
    String,
    /// The first character of a terminator of two, within a text.
    StringEscape,
}

impl TextFilter {
    /// A filter at the beginning of a text.
    pub fn new(destination: Destination) -> Self {
        Self { destination, sequence: None }
    }

    /// The next piece, as it is written.
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        match self.destination {
            Destination::Terminal => escape_for_terminal(text),
            Destination::Pipe => self.without_sequences(text),
        }
    }

    fn without_sequences<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.sequence.is_none() && !text.chars().any(is_dropped_in_pipe) {
            return Cow::Borrowed(text);
        }
        let kept = text.chars().filter(|c| self.keeps(*c));
        Cow::Owned(kept.collect())
    }

    /// Whether a character is text. A line break ends every sequence: an unfinished one hides nothing after it.
    fn keeps(&mut self, c: char) -> bool {
        let Some(sequence) = self.sequence else {
            self.sequence = introduced_by(c);
            return self.sequence.is_none() && !is_dropped_in_pipe(c);
        };
        self.sequence = sequence.after(c);
        match (c, self.sequence) {
            ('\n', _) => true,
            // The sequence was none: the character is text.
            (_, None) => !sequence.has_final(c) && !c.is_control(),
            (_, Some(_)) => false,
        }
    }
}

/// The sequence that a character begins.
fn introduced_by(c: char) -> Option<Sequence> {
    let kind = match c {
        '\x1b' => Kind::Escape,
        '\u{9b}' => Kind::Control,
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Kind::String,
        _ => return None,
    };
    Some(Sequence { kind, chars: 0 })
}

impl Sequence {
    /// The sequence after one more character; `None` when it has ended.
    fn after(self, c: char) -> Option<Self> {
        let more = |kind, chars| Some(Self { kind, chars });
        if c == '\n' {
            return None;
        }
        if c == '\x1b' {
            return match self.kind {
                Kind::String | Kind::StringEscape => more(Kind::StringEscape, self.chars + 1),
                Kind::Escape | Kind::Control => more(Kind::Escape, 0),
            };
        }
        match (self.kind, c) {
            (Kind::Escape, '[') if self.chars == 0 => more(Kind::Control, 0),
            (Kind::Escape, ']' | 'P' | 'X' | '^' | '_') if self.chars == 0 => more(Kind::String, 0),
            (Kind::Escape, ' '..='/') | (Kind::Control, ' '..='?')
                if self.chars < CONTROL_CHARS_MAX =>
            {
                more(self.kind, self.chars + 1)
            }
            // The text has ended, and another sequence begins.
            (Kind::StringEscape, _) if c != '\\' => ESCAPE.after(c),
            (Kind::String, _)
                if self.chars < STRING_CHARS_MAX && !matches!(c, '\x07' | '\u{9c}') =>
            {
                more(self.kind, self.chars + 1)
            }
            (Kind::Escape | Kind::Control | Kind::String | Kind::StringEscape, _) => None,
        }
    }

    /// Whether a character that ends the sequence belongs to it.
    fn has_final(self, c: char) -> bool {
        match self.kind {
            Kind::Escape | Kind::Control => {
                matches!(c, '0'..='~') && self.chars < CONTROL_CHARS_MAX
            }
            Kind::String => self.chars < STRING_CHARS_MAX,
            Kind::StringEscape => c == '\\' || ESCAPE.has_final(c),
        }
    }
}

/// The first sequence that sets a color, and the text before and after it.
fn next_color(text: &str) -> Option<(&str, &str, &str)> {
    const BEGIN: &str = "\x1b[";
    text.match_indices(BEGIN).find_map(|(at, _)| {
        let parameters = at + BEGIN.len();
        let digits = text[parameters..].find(|c: char| !matches!(c, '0'..='9' | ';'))?;
        let after = text[parameters + digits..].strip_prefix('m')?;
        Some((&text[..at], &text[at..text.len() - after.len()], after))
    })
}

/// JSON whose strings have escapes in place of some characters. Outside of strings there are none of them.
fn escape_json(json: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !json.chars().any(&is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal gets an escape in place of a character.
fn is_escaped_for_terminal(c: char) -> bool {
    matches!(escape_for_terminal(c.encode_utf8(&mut [0; 4])), Cow::Owned(_))
}

/// Whether a pipe gets no such character.
fn is_dropped_in_pipe(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piped(text: &str) -> String {
        let whole = Destination::Pipe.text(text).into_owned();
        // The text does not depend on how it is split.
        let mut filter = TextFilter::new(Destination::Pipe);
        let mut buffer = [0; 4];
        let pieces = text.chars().map(|c| filter.text(c.encode_utf8(&mut buffer)).into_owned());
        assert_eq!(pieces.collect::<String>(), whole);
        whole
    }

    #[test]
    fn a_pipe_gets_no_control_sequences() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\x1b[31;1mred\x1b[0m", "red"),
            ("\u{9b}31mred\u{9b}0m", "red"),
            ("\x1b]0;a title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9d}0;title\u{9c}after", "after"),
            ("\x1bPdevice\x1b\\after", "after"),
            ("\x1b(Bset \x1b7saved\x1b8", "set saved"),
            ("\x1b\x1b[1mtwice", "twice"),
            ("\x1b]0;title\x1b[1mbold", "bold"),
            ("\x1b_a string\x07after", "after"),
            ("over\rwritten\x08\x07\x00\x7f\u{85}", "overwritten"),
            ("windows\r\nlines\r\n", "windows\nlines\n"),
            ("größe \u{202e}→ ✓", "größe \u{202e}→ ✓"),
        ] {
            assert_eq!(piped(text), expected, "{}", text.escape_debug());
        }
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing_after_it() {
        assert_eq!(piped("\x1b]never ended\nvisible\n"), "\nvisible\n");
        assert_eq!(piped("\x1b[12;\nvisible\n"), "\nvisible\n");
        assert_eq!(piped("\x1bé not hidden"), "é not hidden");
        assert_eq!(piped("\x1b[3é not hidden"), "é not hidden");
        let long = format!("\x1bP{}visible", "x".repeat(STRING_CHARS_MAX + 10));
        assert!(piped(&long).ends_with("visible"));
        let long = format!("\x1b[{}visible", "1".repeat(CONTROL_CHARS_MAX + 1));
        assert!(piped(&long).ends_with("visible"));
    }

    #[test]
    fn a_line_with_colors_keeps_its_colors_on_a_terminal_alone() {
        let line = "\x1b[2mWARN\x1b[0m \x1b[2Ja\u{202e}\x1b[38;5;1mé\x1b[é";
        let shown = Destination::Terminal.colored_text(line);
        assert_eq!(shown, "\x1b[2mWARN\x1b[0m \\u{1b}[2Ja\\u{202e}\x1b[38;5;1mé\\u{1b}[é");
        assert_eq!(Destination::Pipe.colored_text(line), "WARN a\u{202e}éé");
    }

    #[test]
    fn json_has_the_same_values_everywhere_and_nothing_that_controls() {
        let value = serde_json::json!({"text": "a\x1b[2J\u{9b}\u{202e}\u{e0041}é\u{10ffff}\n", "\u{2066}": 1});
        let json = serde_json::to_string_pretty(&value).unwrap();
        for destination in [Destination::Terminal, Destination::Pipe] {
            let shown = destination.json(&json).into_owned();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
            assert_eq!(destination.text(&shown), shown);
        }
        let shown = Destination::Terminal.json(&json);
        assert!(!shown.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{shown}");
        assert!(Destination::Pipe.json(&json).contains("\u{202e}"));
        let plain = serde_json::json!({"text": "größe \u{202e} \n"}).to_string();
        assert_eq!(Destination::Pipe.json(&plain), plain, "unchanged");
    }
}
