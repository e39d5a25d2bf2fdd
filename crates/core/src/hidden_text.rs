//! Characters that a person does not see, or that change what a person sees: control characters, Unicode tags,
//! direction overrides, zero-width characters. They can hide instructions from a person but not from a model,
//! and a command from the person who is asked about it.
//!
//! | function               | for                                             | what happens to them                |
//! |------------------------|-------------------------------------------------|-------------------------------------|
//! | [`escape_hidden_text`] | text of files and tools in a conversation       | escaped; what languages need stays  |
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
    escape(text, |c| !matches!(c, '\t' | '\n' | '\r') && is_hidden(c))
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

/// Whether `c` is a control character, or invisible and not needed by a language or a symbol: joiners, variation
/// selectors, soft hyphens and the private symbols of fonts are.
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
        let plain = "नमस्\u{200d}ते “quotes” 👨\u{200d}👩 e\u{301} \u{fe0f} می\u{200c}خواهم \u{e0a0}";
        assert!(matches!(escape_hidden_text(plain), Cow::Borrowed(same) if same == plain));
        assert!(matches!(escape_for_terminal(plain), Cow::Borrowed(same) if same == plain));
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
