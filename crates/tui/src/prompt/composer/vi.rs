//! The keys of vi in the prompt: a mode for text and a mode for commands.

use super::{Composer, Motion};

/// Prompts that `u` goes back to.
const UNDO_MAX: usize = 20;

/// What keys do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ViMode {
    /// Keys are text.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
}

/// The state of the keys of vi.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Vi {
    pub(crate) mode: ViMode,
    /// The first key of a command of two.
    pending: Option<char>,
    /// Earlier prompts.
    undo: Vec<Composer>,
}

/// What becomes of a key in the mode for commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViNext {
    /// It is done.
    Done,
    /// It goes to the row above: an earlier prompt, where there is none.
    Up,
    /// It goes to the row below.
    Down,
}

impl Vi {
    /// Esc: from text to commands. False when it was there already.
    pub(crate) fn escape(&mut self, composer: &mut Composer) -> bool {
        let was_pending = self.pending.take().is_some();
        if self.mode == ViMode::Insert && !composer.is_empty() {
            self.mode = ViMode::Normal;
            if composer.cursor() > composer.target(Motion::LineStart) {
                composer.go(Motion::Left);
            }
            return true;
        }
        was_pending
    }

    /// The prompt begins anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// A key in the mode for commands. A key that is no command does nothing.
    pub(crate) fn key(&mut self, key: char, composer: &mut Composer) -> ViNext {
        if let Some(first) = self.pending.take() {
            self.second(first, key, composer);
            return ViNext::Done;
        }
        match key {
            'i' => self.insert(composer),
            'a' => {
                go_within_line(composer, Motion::Right);
                self.insert(composer);
            }
            'I' => {
                composer.go(Motion::LineStart);
                self.insert(composer);
            }
            'A' => {
                composer.go(Motion::LineEnd);
                self.insert(composer);
            }
            'o' => {
                self.insert(composer);
                composer.go(Motion::LineEnd);
                composer.insert("\n");
            }
            'h' => go_within_line(composer, Motion::Left),
            'l' => go_within_line(composer, Motion::Right),
            'j' => return ViNext::Down,
            'k' => return ViNext::Up,
            'w' => composer.go_to(next_word(composer.text(), composer.cursor())),
            'b' => composer.go(Motion::WordLeft),
            'e' => composer.go_to(word_end(composer.text(), composer.cursor())),
            '0' => composer.go(Motion::LineStart),
            '$' => composer.go(Motion::LineEnd),
            'G' => composer.go(Motion::End),
            'g' | 'd' | 'c' => self.pending = Some(key),
            'x' if composer.target(Motion::Right) <= composer.target(Motion::LineEnd) => {
                self.remember(composer);
                composer.remove(Motion::Right);
            }
            'u' => self.go_back(composer),
            'p' => {
                self.remember(composer);
                composer.insert_removed();
            }
            _ => {}
        }
        ViNext::Done
    }

    fn second(&mut self, first: char, key: char, composer: &mut Composer) {
        match (first, key) {
            ('g', 'g') => composer.go(Motion::Start),
            ('d', 'd') => {
                self.remember(composer);
                remove_line(composer);
            }
            ('d', 'w') => {
                self.remember(composer);
                let end = next_word(composer.text(), composer.cursor());
                let end = end.min(composer.target(Motion::LineEnd).max(composer.cursor()));
                composer.remove_to(end);
            }
            ('c', 'w') => {
                self.insert(composer);
                composer.remove(Motion::WordRight);
            }
            _ => {}
        }
    }

    fn insert(&mut self, composer: &Composer) {
        self.remember(composer);
        self.mode = ViMode::Insert;
    }

    fn remember(&mut self, composer: &Composer) {
        if self.undo.len() == UNDO_MAX {
            self.undo.remove(0);
        }
        self.undo.push(composer.clone());
    }

    fn go_back(&mut self, composer: &mut Composer) {
        // What was typed since `i` differs from what is remembered.
        while let Some(earlier) = self.undo.pop() {
            if earlier.text != composer.text {
                let removed = std::mem::take(&mut composer.removed);
                *composer = Composer { removed, ..earlier };
                return;
            }
        }
    }
}

fn go_within_line(composer: &mut Composer, motion: Motion) {
    let (start, end) = (composer.target(Motion::LineStart), composer.target(Motion::LineEnd));
    let target = composer.target(motion);
    if (start..=end).contains(&target) {
        composer.go(motion);
    }
}

/// Removes the line of the cursor with its end.
fn remove_line(composer: &mut Composer) {
    composer.go(Motion::LineStart);
    let end = composer.target(Motion::LineEnd);
    if end < composer.text().len() {
        composer.remove_to(end + 1);
        return;
    }
    // The last line goes with the end of the one before it.
    let start = composer.cursor().saturating_sub(1);
    composer.remove_to(end);
    if start < composer.cursor() {
        let removed = composer.removed.clone();
        composer.remove(Motion::Left);
        composer.removed = removed;
        composer.go(Motion::LineStart);
    }
}

/// Where the next word begins: behind the letters, or the signs, at the cursor and the blanks that follow.
fn next_word(text: &str, cursor: usize) -> usize {
    let kind = text[cursor..].chars().next().map(kind_of);
    let mut rest = text[cursor..].char_indices().skip_while(|(_, c)| Some(kind_of(*c)) == kind);
    let next = rest.find(|(_, c)| kind_of(*c) != Kind::Blank);
    let next = match (kind, next) {
        (Some(Kind::Blank), None) | (None, _) => None,
        (_, next) => next,
    };
    next.map_or(text.len(), |(at, _)| cursor + at)
}

/// The last character of the word at the cursor, or of the next one when the cursor is there already.
fn word_end(text: &str, cursor: usize) -> usize {
    let after = text[cursor..].chars().next().map_or(0, char::len_utf8);
    let from = cursor + after;
    let Some(start) = text[from..].find(|c| kind_of(c) != Kind::Blank).map(|at| from + at) else {
        return cursor;
    };
    let kind = text[start..].chars().next().map(kind_of);
    let word = text[start..].char_indices().take_while(|(_, c)| Some(kind_of(*c)) == kind);
    word.last().map_or(cursor, |(at, _)| start + at)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Word,
    Sign,
}

fn kind_of(c: char) -> Kind {
    if c.is_whitespace() {
        Kind::Blank
    } else if c.is_alphanumeric() || c == '_' {
        Kind::Word
    } else {
        Kind::Sign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `|` at the cursor after these keys, from the start of the text in the mode for commands.
    fn after(text: &str, keys: &str) -> String {
        let mut composer = Composer::default();
        composer.set(text);
        composer.go(Motion::Start);
        let mut vi = Vi { mode: ViMode::Normal, ..Vi::default() };
        for key in keys.chars() {
            match vi.mode {
                ViMode::Normal => drop(vi.key(key, &mut composer)),
                ViMode::Insert => drop(composer.insert(&key.to_string())),
            }
        }
        let (before, behind) = composer.text().split_at(composer.cursor());
        format!("{before}|{behind}")
    }

    #[test]
    fn motions_go_by_characters_words_lines_and_to_the_ends() {
        let text = "fn main() {\n    go();\n}";
        for (keys, expected) in [
            ("l", "f|n main() {\n    go();\n}"),
            ("hh", "|fn main() {\n    go();\n}"),
            ("w", "fn |main() {\n    go();\n}"),
            ("ww", "fn main|() {\n    go();\n}"),
            ("e", "f|n main() {\n    go();\n}"),
            ("ee", "fn mai|n() {\n    go();\n}"),
            ("wwb", "fn |main() {\n    go();\n}"),
            ("$", "fn main() {|\n    go();\n}"),
            ("$0", "|fn main() {\n    go();\n}"),
            ("G", "fn main() {\n    go();\n}|"),
            ("Ggg", "|fn main() {\n    go();\n}"),
        ] {
            assert_eq!(after(text, keys), expected, "{keys}");
        }
    }

    #[test]
    fn text_is_inserted_removed_changed_inserted_again_and_taken_back() {
        for (text, keys, expected) in [
            ("bc", "ia", "a|bc"),
            ("ac", "ab", "ab|c"),
            ("ab", "Ac", "abc|"),
            ("bc", "lIa", "a|bc"),
            ("a", "ob", "a\nb|"),
            ("abc", "lx", "a|c"),
            ("a\nb", "lx", "a|\nb"),
            ("one two three", "wdw", "one |three"),
            ("one two", "cwsix", "six| two"),
            ("one\ntwo\nthree", "dd", "|two\nthree"),
            ("one\ntwo", "Gdd", "|one"),
            ("one\ntwo\n", "ddGp", "two\none\n|"),
            ("one two", "dwu", "|one two"),
            ("one", "xxuu", "|one"),
            ("one", "zZq", "|one"),
            ("one", "dz", "|one"),
            ("漢字 wide", "w", "漢字 |wide"),
            ("", "xdwddeb", "|"),
        ] {
            assert_eq!(after(text, keys), expected, "{text:?} {keys}");
        }
    }
}
