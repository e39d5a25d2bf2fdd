//! Takes what looks like a key out of running text.
//!
//! | what           | begins with                              | 16 or more of               |
//! |----------------|------------------------------------------|-----------------------------|
//! | an API key     | `sk-` (and so `sk-ant-`), `AIza`, `ghp_` | `A-Z a-z 0-9 _ -`           |
//! | a bearer token | `Bearer `, in any case                   | `A-Z a-z 0-9 . _ ~ + / = -` |
//!
//! A key begins where a word does, also behind an escape of JSON such as `\n`: `task-…` holds
//! none. It becomes `[redacted]`, to its end; of a bearer token, `Bearer ` stays. How a text is
//! cut into pieces makes no difference: what may become a key is held back until that is known.

use std::collections::VecDeque;

/// Fewest characters of a key, behind what it begins with.
const KEY_CHARS_MIN: usize = 16;

/// What is written in place of a key.
const REDACTED: &str = "[redacted]";

/// Enough to know whether a word begins: `\u000a` is six characters.
const CONTEXT_CHARS: usize = 6;

static MARKS: [Mark; 4] = [
    Mark { start: "sk-", kept: 0, more: "_-" },
    Mark { start: "AIza", kept: 0, more: "_-" },
    Mark { start: "ghp_", kept: 0, more: "_-" },
    Mark { start: "bearer ", kept: 7, more: "._~+/=-" },
];

/// What a kind of key begins with.
#[derive(Debug)]
struct Mark {
    start: &'static str,
    /// How much of the beginning is no secret. Such a beginning is known in any case.
    kept: usize,
    /// What it may hold besides letters and digits.
    more: &'static str,
}

/// A text with its keys taken out.
pub(crate) fn redacted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut redactor = Redactor::default();
    redactor.feed(text, (), &mut |(), part| safe.push_str(part));
    redactor.finish(&mut |(), part| safe.push_str(part));
    safe
}

/// Reads a text piece by piece. Each piece has an origin, and what becomes of it goes back there;
/// what stands for a key goes to where the key began.
#[derive(Debug)]
pub(crate) struct Redactor<O> {
    /// The last characters before those held back.
    context: String,
    /// May be the beginning of a key.
    held: String,
    /// Where each character held back came from.
    origins: VecDeque<O>,
    /// In the middle of a key.
    inside: Option<&'static Mark>,
}

impl<O> Default for Redactor<O> {
    fn default() -> Self {
        Self { context: String::new(), held: String::new(), origins: VecDeque::new(), inside: None }
    }
}

impl<O: Copy> Redactor<O> {
    /// Takes more text, and hands out what is certain now.
    pub(crate) fn feed(&mut self, text: &str, origin: O, safe: &mut impl FnMut(O, &str)) {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if self.inside.is_some_and(|mark| mark.holds(next)) {
                rest = &rest[next.len_utf8()..];
                continue;
            }
            self.inside = None;
            let plain = if self.held.is_empty() { plain_bytes(rest) } else { 0 };
            if plain > 0 {
                safe(origin, &rest[..plain]);
                self.remember(&rest[..plain]);
                rest = &rest[plain..];
            } else {
                self.held.push(next);
                self.origins.push_back(origin);
                self.settle(safe);
                rest = &rest[next.len_utf8()..];
            }
        }
    }

    /// Hands out what is held back: nothing follows that could make it a key.
    pub(crate) fn finish(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            self.release(safe);
        }
    }

    /// The origin of the first character that is held back.
    pub(crate) fn waiting(&self) -> Option<O> {
        self.origins.front().copied()
    }

    /// Lets go of what cannot be a key anymore.
    fn settle(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            let begun = if self.at_word_start() {
                MARKS.iter().find_map(|mark| mark.chars_behind(&self.held).map(|n| (mark, n)))
            } else {
                None
            };
            match begun {
                Some((mark, chars)) if chars >= KEY_CHARS_MIN => {
                    for _ in 0..mark.kept {
                        self.release(safe);
                    }
                    if let Some(origin) = self.waiting() {
                        safe(origin, REDACTED);
                    }
                    self.remember(REDACTED);
                    self.held.clear();
                    self.origins.clear();
                    self.inside = Some(mark);
                }
                Some(_) => return,
                None => self.release(safe),
            }
        }
    }

    /// Hands out the first character that is held back.
    fn release(&mut self, safe: &mut impl FnMut(O, &str)) {
        let length = self.held.chars().next().map_or(0, char::len_utf8);
        let first: String = self.held.drain(..length).collect();
        if let Some(origin) = self.origins.pop_front() {
            safe(origin, &first);
        }
        self.remember(&first);
    }

    fn remember(&mut self, text: &str) {
        if let Some((start, _)) = text.char_indices().rev().nth(CONTEXT_CHARS - 1) {
            text[start..].clone_into(&mut self.context);
            return;
        }
        self.context.push_str(text);
        let surplus = self.context.chars().count().saturating_sub(CONTEXT_CHARS);
        let start = self.context.char_indices().nth(surplus).map_or(0, |(start, _)| start);
        self.context.drain(..start);
    }

    /// Whether a word begins behind the context.
    fn at_word_start(&self) -> bool {
        let context = self.context.as_str();
        if !context.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            return true;
        }
        let escaped = |code: &str| {
            matches!(code, "n" | "r" | "t" | "b" | "f")
                || code
                    .strip_prefix('u')
                    .is_some_and(|hex| hex.len() == 4 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        context.rsplit_once('\\').is_some_and(|(_, code)| escaped(code))
    }
}

impl Mark {
    fn holds(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.more.contains(c)
    }

    /// How many characters of a key are behind the beginning, if `text` may be one so far.
    fn chars_behind(&self, text: &str) -> Option<usize> {
        let length = self.start.len().min(text.len());
        let (found, start) = (text.get(..length)?, &self.start[..length]);
        let same = if self.kept > 0 { found.eq_ignore_ascii_case(start) } else { found == start };
        let behind = &text[length..];
        (same && behind.chars().all(|c| self.holds(c))).then_some(behind.len())
    }
}

/// How many bytes there are before anything that a key may begin with.
fn plain_bytes(text: &str) -> usize {
    let begins = |byte: u8| matches!(byte, b's' | b'A' | b'g' | b'b' | b'B');
    text.bytes().position(begins).unwrap_or(text.len())
}
