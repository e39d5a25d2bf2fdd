//! What is typed for a message. Nothing in a message can press a key: what is no text is left out, so
//! no message ends a paste, interrupts a program or answers in a person's place.

use std::path::Path;

use antiphon_core::{InputBlock, UserMessage, visible};

/// Longest message that is typed, in bytes. A longer one is put into a file, and that is said.
pub const TYPED_BYTES_MAX: usize = 64 * 1024;

const PASTE_BEGINS: &str = "\x1b[200~";
const PASTE_ENDS: &str = "\x1b[201~";

/// How a program takes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// It tells a paste from keys: a line break in it submits nothing.
    Pastes,
    /// Each line is one.
    Lines,
}

/// A message as text. Pictures cannot be typed, and are told of.
pub(crate) fn text_of(message: &UserMessage) -> String {
    let blocks = message.content.iter().map(|block| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(image) => format!("[a picture ({}) is left out]", image.mime_type()),
    });
    visible(&blocks.collect::<Vec<_>>().join("\n"))
}

/// What to type when the message itself is in a file.
pub(crate) fn text_for(file: &Path) -> String {
    format!("[The message is too long to be typed. Read it in the file {}]", file.display())
}

/// The keys that write a text, without those that submit it.
pub(crate) fn keys(text: &str, taking: Taking) -> Vec<u8> {
    let text = text.replace("\r\n", "\n");
    let is_text = |c: &char| *c == '\n' || *c == '\t' || !c.is_control();
    let text: String = text.replace('\r', "\n").chars().filter(is_text).collect();
    // The return key is what people press, and what terminals paste, for a line break.
    let text = text.trim_end_matches('\n').replace('\n', "\r");
    match taking {
        Taking::Pastes => format!("{PASTE_BEGINS}{text}{PASTE_ENDS}").into_bytes(),
        // A tab on its own asks many programs to complete a word.
        Taking::Lines => text.replace('\t', "    ").into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, taking: Taking) -> String {
        String::from_utf8(keys(text, taking)).unwrap()
    }

    #[test]
    fn lines_stay_one_paste() {
        assert_eq!(typed("a\n\tb\r\n", Taking::Pastes), "\x1b[200~a\r\tb\x1b[201~");
        assert_eq!(typed("a\n\tb\n", Taking::Lines), "a\r    b");
    }

    #[test]
    fn a_message_cannot_end_its_paste_or_press_a_key() {
        let hostile = "a\x1b[201~\x03rm\x04\u{9b}201~\x7f";
        assert_eq!(typed(hostile, Taking::Pastes), "\x1b[200~a[201~rm201~\x1b[201~");
    }
}
