//! The keys that type a message. A message cannot press control keys: other characters than text
//! are removed, so no message ends a paste, interrupts a program or answers in place of a user. Line
//! breaks are sent only inside of a paste that the program has enabled; the final return key is ours.

use std::path::Path;

use antiphon_core::{InputBlock, UserMessage, visible};

/// Longest message that is typed, in bytes. A longer one is written to a file, and its path is
/// typed.
pub const TYPED_BYTES_MAX: usize = 64 * 1024;

const PASTE_BEGINS: &str = "\x1b[200~";
const PASTE_ENDS: &str = "\x1b[201~";

/// How a program reads text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputStyle {
    /// It supports bracketed paste: a line break submits nothing.
    Pastes,
    /// It reads a line: a line break would submit what is before it.
    Line,
}

/// A message as text. An image becomes a note.
pub(crate) fn text_of(message: &UserMessage) -> String {
    let blocks = message.content.iter().map(|block| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(image) => format!("[a picture ({}) is left out]", image.mime_type()),
    });
    visible(&blocks.collect::<Vec<_>>().join("\n"))
}

/// The text to type when the message is in a file.
pub(crate) fn text_for(file: &Path) -> String {
    format!("[The message is too long to be typed. Read it in the file {}]", file.display())
}

/// The text without control characters. Line breaks stay, tabs become blanks: many programs complete a
/// word on a tab.
pub(crate) fn typeable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let text = text.replace('\t', "    ");
    let is_text = |c: &char| *c == '\n' || !c.is_control();
    let text: String = text.chars().filter(is_text).collect();
    text.trim_end_matches('\n').to_owned()
}

/// The keys that type a text, without the submit keys. `None` for a text of several lines that the program
/// would take as several messages.
pub(crate) fn keys(text: &str, style: InputStyle) -> Option<Vec<u8>> {
    let text = typeable(text);
    match style {
        // Users and terminals send the return key for a line break.
        InputStyle::Pastes => {
            let text = text.replace('\n', "\r");
            Some(format!("{PASTE_BEGINS}{text}{PASTE_ENDS}").into_bytes())
        }
        InputStyle::Line => (!text.contains('\n')).then(|| text.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, style: InputStyle) -> Option<String> {
        keys(text, style).map(|keys| String::from_utf8(keys).unwrap())
    }

    #[test]
    fn lines_stay_one_paste() {
        let pasted = "\x1b[200~a\r    b\x1b[201~".to_owned();
        assert_eq!(typed("a\n\tb\r\n", InputStyle::Pastes), Some(pasted));
    }

    #[test]
    fn no_line_break_is_typed_outside_of_a_paste() {
        for text in ["a\nb", "a\rb", "a\r\nb", "a\u{2028}b", "a\u{2029}b"] {
            assert_eq!(typed(text, InputStyle::Line), None, "{text:?}");
        }
        assert_eq!(typed("a\tb\n", InputStyle::Line), Some("a    b".to_owned()));
    }

    #[test]
    fn a_message_cannot_end_its_paste_or_press_a_key() {
        let hostile = "a\x1b[201~\x03rm\x04\u{9b}201~\x7f\u{85}\x00";
        let pasted = "\x1b[200~a[201~rm201~\x1b[201~".to_owned();
        assert_eq!(typed(hostile, InputStyle::Pastes), Some(pasted));
        assert_eq!(typed(hostile, InputStyle::Line), Some("a[201~rm201~".to_owned()));
    }

    #[test]
    fn every_control_character_but_a_line_break_is_removed() {
        let all: String = (0..=0x9f_u32).filter_map(char::from_u32).collect();
        let typed = typeable(&format!("{all}x"));
        let left: Vec<char> = typed.chars().filter(|c| c.is_control()).collect();
        assert!(left.iter().all(|c| *c == '\n'), "{left:?}");
    }
}
