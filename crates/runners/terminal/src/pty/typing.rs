//! The keys that type a message. A message cannot press control keys: other characters than text
//! are removed, so no message ends a paste, interrupts a program or answers in place of a user.

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
    /// Each line is a message.
    Lines,
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

/// The keys that type a text, without the submit keys.
pub(crate) fn keys(text: &str, taking: InputStyle) -> Vec<u8> {
    let text = text.replace("\r\n", "\n");
    let is_text = |c: &char| *c == '\n' || *c == '\t' || !c.is_control();
    let text: String = text.replace('\r', "\n").chars().filter(is_text).collect();
    // Users and terminals send the return key for a line break.
    let text = text.trim_end_matches('\n').replace('\n', "\r");
    match taking {
        InputStyle::Pastes => format!("{PASTE_BEGINS}{text}{PASTE_ENDS}").into_bytes(),
        // Many programs complete a word on a tab.
        InputStyle::Lines => text.replace('\t', "    ").into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, taking: InputStyle) -> String {
        String::from_utf8(keys(text, taking)).unwrap()
    }

    #[test]
    fn lines_stay_one_paste() {
        assert_eq!(typed("a\n\tb\r\n", InputStyle::Pastes), "\x1b[200~a\r\tb\x1b[201~");
        assert_eq!(typed("a\n\tb\n", InputStyle::Lines), "a\r    b");
    }

    #[test]
    fn a_message_cannot_end_its_paste_or_press_a_key() {
        let hostile = "a\x1b[201~\x03rm\x04\u{9b}201~\x7f";
        assert_eq!(typed(hostile, InputStyle::Pastes), "\x1b[200~a[201~rm201~\x1b[201~");
    }
}
