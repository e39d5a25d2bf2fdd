//! Redacts text that looks like a key from streamed text.
//!
//! | what           | begins with                              | 16 or more of               |
//! |----------------|------------------------------------------|-----------------------------|
//! | an API key     | `sk-` (and so `sk-ant-`), `AIza`, `ghp_` | `A-Z a-z 0-9 _ -`           |
//! | a bearer token | `Bearer `, in any case                   | `A-Z a-z 0-9 . _ ~ + / = -` |
//!
//! A key starts at the start of a word, also after a JSON escape such as `\n`: `task-…` contains
//! none. It becomes `[redacted]`, to its end; of a bearer token, `Bearer ` stays. The result does
//! not depend on how the text is split: text that may become a key is held back until that is
//! decided.

use std::collections::VecDeque;

/// Fewest characters of a key after its prefix.
const KEY_CHARS_MIN: usize = 16;

/// Replaces a key.
const REDACTED: &str = "[redacted]";

/// Enough to decide whether a word starts: `\u000a` has six characters.
const CONTEXT_CHARS: usize = 6;

static KEY_PREFIXES: [KeyPrefix; 4] = [
    KeyPrefix { start: "sk-", kept_prefix: 0, more: "_-" },
    KeyPrefix { start: "AIza", kept_prefix: 0, more: "_-" },
    KeyPrefix { start: "ghp_", kept_prefix: 0, more: "_-" },
    KeyPrefix { start: "bearer ", kept_prefix: 7, more: "._~+/=-" },
];

/// The prefix of a kind of key.
#[derive(Debug)]
struct KeyPrefix {
    start: &'static str,
    /// Length of the part of the prefix that is kept. Such a prefix is matched in any case.
    kept_prefix: usize,
    /// Characters it may contain besides letters and digits.
    more: &'static str,
}

/// A text with its keys redacted.
pub(crate) fn redacted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut redactor = Redactor::default();
    redactor.feed(text, (), &mut |(), part| safe.push_str(part));
    redactor.finish(&mut |(), part| safe.push_str(part));
    safe
}

/// Reads a text piece by piece. Each piece has an origin, and its output returns there; the
/// replacement of a key goes to the origin of the key's start.
#[derive(Debug)]
pub(crate) struct Redactor<O> {
    /// The last characters before the held-back ones.
    context: String,
    /// Possibly the start of a key.
    held: String,
    /// The origin of each held-back character.
    origins: VecDeque<O>,
    /// Inside of a key.
    inside: Option<&'static KeyPrefix>,
}

impl<O> Default for Redactor<O> {
    fn default() -> Self {
        Self { context: String::new(), held: String::new(), origins: VecDeque::new(), inside: None }
    }
}

impl<O: Copy> Redactor<O> {
    /// Adds text and passes on what is decided now.
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

    /// Passes on what is held back: no more text follows.
    pub(crate) fn finish(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            self.release(safe);
        }
    }

    /// The origin of the first held-back character.
    pub(crate) fn waiting(&self) -> Option<O> {
        self.origins.front().copied()
    }

    /// Passes on what cannot become a key.
    fn settle(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            let started = if self.at_word_start() {
                KEY_PREFIXES
                    .iter()
                    .find_map(|mark| mark.chars_behind(&self.held).map(|n| (mark, n)))
            } else {
                None
            };
            match started {
                Some((mark, chars)) if chars >= KEY_CHARS_MIN => {
                    for _ in 0..mark.kept_prefix {
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

    /// Passes on the first held-back character.
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

    /// Whether a word starts after the context.
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

impl KeyPrefix {
    fn holds(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.more.contains(c)
    }

    /// Number of key characters after the prefix, if `text` may be a key so far.
    fn chars_behind(&self, text: &str) -> Option<usize> {
        let length = self.start.len().min(text.len());
        let (found, start) = (text.get(..length)?, &self.start[..length]);
        let same =
            if self.kept_prefix > 0 { found.eq_ignore_ascii_case(start) } else { found == start };
        let behind = &text[length..];
        (same && behind.chars().all(|c| self.holds(c))).then_some(behind.len())
    }
}

/// Number of bytes before any possible start of a key.
fn plain_bytes(text: &str) -> usize {
    let begins = |byte: u8| matches!(byte, b's' | b'A' | b'g' | b'b' | b'B');
    text.bytes().position(begins).unwrap_or(text.len())
}
