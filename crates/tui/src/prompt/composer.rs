//! The editor of the prompt: several lines, a cursor, a clipboard for removed text, and folded pastes.
//!
//! The cursor of the terminal stands at the cursor of the editor, so that input methods work.

mod layout;
mod vi;

use unicode_segmentation::UnicodeSegmentation;

pub(crate) use layout::ComposerView;
pub(crate) use vi::{Vi, ViMode, ViNext};

/// Bytes of a prompt. More are not taken.
pub(crate) const PROMPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A paste with more lines or bytes is shown folded.
const FOLD_LINES: usize = 8;
const FOLD_BYTES: usize = 2048;

/// Text that was pasted and is shown as one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoldedPaste {
    mark: String,
    text: String,
}

/// A prompt while it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Composer {
    text: String,
    /// Byte of the text that the cursor stands before.
    cursor: usize,
    /// Text that was removed last.
    removed: String,
    folded: Vec<FoldedPaste>,
}

/// Where the cursor goes, or up to where text is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

impl Composer {
    /// The text, with marks in place of folded pastes.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The byte that the cursor stands before.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text.
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.folded.clear();
        self.cursor = 0;
        self.insert(text);
    }

    /// The whole prompt, pastes included.
    pub(crate) fn whole_text(&self) -> String {
        let mut text = self.text.clone();
        for paste in &self.folded {
            text = text.replacen(&paste.mark, &paste.text, 1);
        }
        text
    }

    /// Takes the whole prompt, pastes included, and leaves nothing.
    pub(crate) fn take(&mut self) -> String {
        let text = self.whole_text();
        self.text.clear();
        self.folded.clear();
        self.cursor = 0;
        text
    }

    /// Inserts text at the cursor. Returns false when the prompt would be too long.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        if self.len_bytes() + text.len() > PROMPT_BYTES_MAX {
            return false;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        true
    }

    /// Inserts pasted text; long text as a mark.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines <= FOLD_LINES && text.len() <= FOLD_BYTES {
            return self.insert(&text);
        }
        if self.len_bytes() + text.len() > PROMPT_BYTES_MAX {
            return false;
        }
        let number = self.folded.len() + 1;
        let mark = format!("[Pasted text {number}: {lines} lines]");
        self.folded.push(FoldedPaste { mark: mark.clone(), text });
        self.insert(&mark)
    }

    fn len_bytes(&self) -> usize {
        self.text.len() + self.folded.iter().map(|paste| paste.text.len()).sum::<usize>()
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        self.cursor = self.target(motion);
    }

    /// Moves the cursor to a byte of the text.
    pub(crate) fn go_to(&mut self, byte: usize) {
        if self.text.is_char_boundary(byte) {
            self.cursor = byte;
        }
    }

    /// Removes the text between the cursor and where a motion leads. More than a character can be inserted again.
    pub(crate) fn remove(&mut self, motion: Motion) {
        let target = self.target(motion);
        let removed = self.cut(target);
        if !matches!(motion, Motion::Left | Motion::Right) && !removed.is_empty() {
            self.removed = removed;
        }
    }

    /// Removes the text between the cursor and a byte. It can be inserted again.
    fn remove_to(&mut self, byte: usize) {
        let removed = self.cut(byte);
        if !removed.is_empty() {
            self.removed = removed;
        }
    }

    fn cut(&mut self, byte: usize) -> String {
        let range = self.cursor.min(byte)..self.cursor.max(byte);
        let removed: String = self.text.drain(range.clone()).collect();
        self.cursor = range.start;
        let text = &self.text;
        self.folded.retain(|paste| text.contains(&paste.mark));
        removed
    }

    /// Inserts what was removed last.
    pub(crate) fn insert_removed(&mut self) {
        let removed = self.removed.clone();
        self.insert(&removed);
    }

    /// Replaces the bytes from `start` to the cursor.
    pub(crate) fn replace_back_to(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    /// The word before the cursor, from its first byte.
    pub(crate) fn word_before_cursor(&self) -> (usize, &str) {
        let before = &self.text[..self.cursor];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        (start, &before[start..])
    }

    fn target(&self, motion: Motion) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        match motion {
            Motion::Left => before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
            Motion::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Motion::WordLeft => {
                let words = before.split_word_bound_indices().rev();
                words
                    .skip_while(|(_, word)| word.trim().is_empty())
                    .map(|(at, _)| at)
                    .next()
                    .unwrap_or(0)
            }
            Motion::WordRight => {
                let mut words = after.split_word_bound_indices();
                let word = words.find(|(_, word)| !word.trim().is_empty());
                self.cursor + word.map_or(after.len(), |(at, word)| at + word.len())
            }
            Motion::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Motion::LineEnd => self.cursor + after.find('\n').unwrap_or(after.len()),
            Motion::Start => 0,
            Motion::End => self.text.len(),
        }
    }
}

#[cfg(test)]
mod tests;
