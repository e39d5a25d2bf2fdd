//! Characters that a person does not see, or that change what a person sees: control characters, Unicode tags,
//! direction overrides, zero-width characters. They can hide instructions from a person but not from a model,
//! and a command from the person who is asked about it.
//!
//! | function               | for                                             | what happens to them                |
//! |------------------------|-------------------------------------------------|-------------------------------------|
//! | [`escape_hidden_text`] | text of files and tools in a conversation       | escaped; what languages need stays, where they need it |
//! | [`visible`]            | labels and messages in a conversation           | removed                             |
//! | [`escaped`]            | names, paths, commands and questions on display | escaped, line breaks and tabs too   |
//! | [`escape_for_terminal`] | text of models and tools on a terminal         | escaped; what languages need stays, and line breaks and tabs |
//!
//! Text for display goes through `antiphon-view`, which adds what depends on where it is written to.

use std::borrow::Cow;

/// `text` without invisible characters: Unicode tags, zero-width and direction marks,
/// variation selectors, private use and control characters other than tab and line breaks.
pub fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c)).collect()
}

/// `text` of a file or a tool, as a conversation gets it: hidden characters become escapes such as `\u{e0041}`,
/// so that nothing is lost and nothing is hidden. Line breaks, tabs and what languages need stay.
pub fn escape_hidden_text(text: &str) -> Cow<'_, str> {
    escape_in_context(text)
}

/// `text` on one line for display, whole: every control and every invisible character becomes an escape such as
/// `\n` or `\u{202e}`, so that two different texts look different.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() || is_invisible(c) || is_line_separator(c))
}

/// `text` of a model or a tool for a terminal: what could control the terminal or change the order of the text
/// becomes an escape. Line breaks and tabs stay; a carriage return before a line break is dropped.
pub fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    let text = if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let controls = |c| !matches!(c, '\t' | '\n') && is_hidden(c);
    match text {
        Cow::Borrowed(text) => escape(text, controls),
        Cow::Owned(text) => Cow::Owned(escape(&text, controls).into_owned()),
    }
}

/// Whether `c` is invisible.
pub(crate) fn is_invisible(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        _ if c.is_control() => true,
        '\u{00AD}'
        | '\u{034F}'
        | '\u{061C}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{E000}'..='\u{F8FF}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}'
        | '\u{F0000}'..='\u{10FFFF}' => true,
        _ => false,
    }
}

/// Escapes control and invisible characters, except line breaks, tabs, the private symbols of fonts, and the
/// marks that a language or a symbol needs where they stand.
fn escape_in_context(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\t' | '\n' | '\r');
    let is_suspect =
        |c: char| !stays(c) && is_invisible(c) && !matches!(c, '\u{E000}'..='\u{F8FF}');
    if !text.chars().any(|c| is_suspect(c) || (c.is_control() && !stays(c))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_hidden = is_suspect(c) || (c.is_control() && !stays(c));
        if !is_hidden || before.is_some_and(|before| is_mark_of(before, c, chars.peek().copied())) {
            shown.push(c);
            before = Some(c);
        } else {
            shown.extend(c.escape_default());
            // A mark behind an escape belongs to nothing.
            before = None;
        }
    }
    // An escape is longer than its character.
    if shown.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// Whether `mark` is an invisible character that has a meaning between these two: one variation selector after
/// a character that has variations, one joiner between two characters of a script or of a symbol. Rows of
/// them have none, and could carry a text.
fn is_mark_of(before: char, mark: char, after: Option<char>) -> bool {
    match mark {
        '\u{FE0E}' | '\u{FE0F}' => is_symbol(before) || is_keycap(before, after),
        '\u{FE00}'..='\u{FE02}' => {
            is_ideograph(before) || matches!(before, '\u{2200}'..='\u{22FF}')
        }
        '\u{180B}'..='\u{180D}' => matches!(before, '\u{1820}'..='\u{18AA}'),
        '\u{200C}' | '\u{200D}' => {
            let is_joined = |c: char| c >= '\u{0300}' && !c.is_whitespace() && !is_invisible(c);
            let before = is_joined(before) || matches!(before, '\u{FE0E}' | '\u{FE0F}');
            before && after.is_some_and(is_joined)
        }
        _ => false,
    }
}

/// Symbols that are shown as text or as a picture.
fn is_symbol(c: char) -> bool {
    matches!(
        c,
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{21FF}'
            | '\u{2300}'..='\u{27BF}'
            | '\u{2900}'..='\u{297F}'
            | '\u{2B00}'..='\u{2BFF}'
            | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
            | '\u{1F000}'..='\u{1FAFF}'
    )
}

/// `1️⃣`: a digit, the selector, and the key around it.
fn is_keycap(before: char, after: Option<char>) -> bool {
    (before.is_ascii_digit() || matches!(before, '#' | '*')) && after == Some('\u{20E3}')
}

fn is_ideograph(c: char) -> bool {
    matches!(
        c,
        '\u{3000}'..='\u{303F}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
            | '\u{FF00}'..='\u{FF9F}'
            | '\u{20000}'..='\u{3FFFF}'
    )
}

/// Whether `c` is a control character, or invisible and of no use to a language or a symbol. Text reaches a
/// terminal in pieces, so this does not depend on what stands before it.
fn is_hidden(c: char) -> bool {
    let is_needed = matches!(
        c,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{180B}'..='\u{180D}'
            | '\u{200C}'..='\u{200D}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{E000}'..='\u{F8FF}'
    );
    c.is_control() || (is_invisible(c) && !is_needed)
}

/// Line breaks beyond ASCII.
fn is_line_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each class of characters that hides something.
    const HOSTILE: &str = "\x1b[2J\r\x08\x7f\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\u{2060}\u{feff}\u{e0041}\u{e0100}\u{10ffff}";

    #[test]
    fn hidden_text_is_escaped_for_a_conversation_and_lines_stay() {
        assert_eq!(
            escape_hidden_text("a\u{e0041}b\u{202e}c\u{2066}\u{200b}\x1b\n\t\r\n"),
            "a\\u{e0041}b\\u{202e}c\\u{2066}\\u{200b}\\u{1b}\n\t\r\n"
        );
    }

    #[test]
    fn characters_that_languages_need_stay() {
        let plain = "नमस्\u{200d}ते “quotes” 👨\u{200d}👩 e\u{301} ☂\u{fe0f} می\u{200c}خواهم \u{e0a0} \
                     👁\u{fe0f}\u{200d}🗨\u{fe0f} 1\u{fe0f}\u{20e3} 葛\u{fe00} \u{1820}\u{180b}";
        assert!(matches!(escape_hidden_text(plain), Cow::Borrowed(same) if same == plain));
        assert!(matches!(escape_for_terminal(plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn marks_that_belong_to_nothing_are_escaped() {
        for (text, expected) in [
            ("a\u{fe00}b", "a\\u{fe00}b"),
            ("☂\u{fe0f}\u{fe0f}\u{fe00}", "☂\u{fe0f}\\u{fe0f}\\u{fe00}"),
            ("☂\u{fe01}", "☂\\u{fe01}"),
            ("1\u{fe0f}2", "1\\u{fe0f}2"),
            (" \u{fe0f}", " \\u{fe0f}"),
            ("葛\u{fe00}\u{fe01}", "葛\u{fe00}\\u{fe01}"),
            ("葛\u{e0100}", "葛\\u{e0100}"),
            ("so\u{ad}ft", "so\\u{ad}ft"),
            ("a\u{34f}b", "a\\u{34f}b"),
            ("a\u{180b}", "a\\u{180b}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("می\u{200c}\u{200d}خ", "می\\u{200c}\\u{200d}خ"),
            ("👨\u{200d} ", "👨\\u{200d} "),
            ("\u{200d}👨", "\\u{200d}👨"),
        ] {
            assert_eq!(escape_hidden_text(text), expected);
        }
    }

    #[test]
    fn a_name_is_escaped_whole() {
        assert_eq!(
            escaped("a\nb\tc\rd\u{2028}\u{200d}\u{fe0f}"),
            r"a\nb\tc\rd\u{2028}\u{200d}\u{fe0f}"
        );
        assert!(escaped(HOSTILE).chars().all(|c| c.is_ascii_graphic()));
    }

    #[test]
    fn text_for_a_terminal_keeps_lines_and_tabs_and_nothing_that_controls() {
        assert_eq!(escape_for_terminal("a\n\tb\r\nc\rd"), "a\n\tb\nc\\rd");
        assert!(escape_for_terminal(HOSTILE).chars().all(|c| c.is_ascii_graphic()));
    }

    #[test]
    fn no_control_character_is_left_in_any_text_for_display() {
        let all: String = ('\0'..=char::MAX).collect();
        let left = |shown: &str| -> Vec<char> {
            shown
                .chars()
                .filter(|c| c.is_control() || ('\u{e0000}'..='\u{e007f}').contains(c))
                .collect()
        };
        assert_eq!(left(&escaped(&all)), []);
        assert_eq!(left(&escape_for_terminal(&all)), ['\t', '\n']);
    }
}
