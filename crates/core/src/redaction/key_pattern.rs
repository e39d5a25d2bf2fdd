//! Removes text with the shape of a key.
//!
//! | kind           | starts with                              | 16 or more of               |
//! |----------------|------------------------------------------|-----------------------------|
//! | an API key     | `sk-` (and so `sk-ant-`), `AIza`, `ghp_` | `A-Z a-z 0-9 _ -`           |
//! | a bearer token | `Bearer `, in any case                   | `A-Z a-z 0-9 . _ ~ + / = -` |
//!
//! A key starts at the start of a word, also after a JSON escape such as `\n`: `task-…` contains
//! none. The whole key becomes `[redacted]`; of a bearer token, `Bearer ` stays. The result does not
//! depend on how the text is split into pieces: text that may become a key is held back until more
//! text decides it.

use std::collections::VecDeque;

use super::REDACTED;

/// Fewest characters of a key after its prefix.
const KEY_CHARS_MIN: usize = 16;

/// Enough to know whether a word starts here: `\u000a` is six characters.
const CONTEXT_CHARS: usize = 6;

static PATTERNS: [KeyPattern; 4] = [
    KeyPattern { prefix: "sk-", prefix_kept: 0, punctuation: "_-" },
    KeyPattern { prefix: "AIza", prefix_kept: 0, punctuation: "_-" },
    KeyPattern { prefix: "ghp_", prefix_kept: 0, punctuation: "_-" },
    KeyPattern { prefix: "bearer ", prefix_kept: 7, punctuation: "._~+/=-" },
];

/// The shape of one kind of key.
#[derive(Debug)]
struct KeyPattern {
    prefix: &'static str,
    /// Bytes of the prefix that stay in the text. A prefix that stays is matched in any letter case.
    prefix_kept: usize,
    /// Characters of a key besides letters and digits.
    punctuation: &'static str,
}

/// Replaces each key in `text`.
pub fn redact_keys(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut redactor = KeyRedactor::default();
    redactor.feed(text, (), &mut |(), part| safe.push_str(part));
    redactor.finish(&mut |(), part| safe.push_str(part));
    safe
}

/// Redacts a text that arrives in pieces. Each piece has an origin `O`; redacted text is handed out
/// with the origin it came from, and the replacement of a key with the origin of its first character.
#[derive(Debug)]
pub struct KeyRedactor<O> {
    /// The last characters before `held`.
    context: String,
    /// Text that may be the start of a key.
    held: String,
    /// The origin of each character of `held`.
    origins: VecDeque<O>,
    /// Set while the rest of a key is skipped.
    inside: Option<&'static KeyPattern>,
}

impl<O> Default for KeyRedactor<O> {
    fn default() -> Self {
        Self { context: String::new(), held: String::new(), origins: VecDeque::new(), inside: None }
    }
}

impl<O: Copy> KeyRedactor<O> {
    /// Takes the next piece. Hands out to `safe` the text that is decided by now.
    pub fn feed(&mut self, text: &str, origin: O, safe: &mut impl FnMut(O, &str)) {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if self.inside.is_some_and(|pattern| pattern.matches(next)) {
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

    /// Ends the text. Hands out the text that was held back.
    pub fn finish(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            self.release(safe);
        }
    }

    /// Origin of the first character that is held back. `None` when none is.
    pub fn first_held(&self) -> Option<O> {
        self.origins.front().copied()
    }

    /// Hands out the text of `held` that cannot be a key anymore, and replaces a key.
    fn settle(&mut self, safe: &mut impl FnMut(O, &str)) {
        while !self.held.is_empty() {
            let started = if self.at_word_start() {
                PATTERNS.iter().find_map(|p| p.chars_after_prefix(&self.held).map(|n| (p, n)))
            } else {
                None
            };
            match started {
                Some((pattern, chars)) if chars >= KEY_CHARS_MIN => {
                    for _ in 0..pattern.prefix_kept {
                        self.release(safe);
                    }
                    if let Some(origin) = self.first_held() {
                        safe(origin, REDACTED);
                    }
                    self.remember(REDACTED);
                    self.held.clear();
                    self.origins.clear();
                    self.inside = Some(pattern);
                }
                Some(_) => return,
                None => self.release(safe),
            }
        }
    }

    /// Hands out the first character of `held`.
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

impl KeyPattern {
    fn matches(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.punctuation.contains(c)
    }

    /// How many characters follow the prefix. `None` when `text` is not the start of a key.
    fn chars_after_prefix(&self, text: &str) -> Option<usize> {
        let length = self.prefix.len().min(text.len());
        let (found, prefix) = (text.get(..length)?, &self.prefix[..length]);
        let same =
            if self.prefix_kept > 0 { found.eq_ignore_ascii_case(prefix) } else { found == prefix };
        let rest = &text[length..];
        (same && rest.chars().all(|c| self.matches(c))).then_some(rest.len())
    }
}

/// How many bytes come before the first letter that a prefix may start with.
fn plain_bytes(text: &str) -> usize {
    let starts = |byte: u8| matches!(byte, b's' | b'A' | b'g' | b'b' | b'B');
    text.bytes().position(starts).unwrap_or(text.len())
}
