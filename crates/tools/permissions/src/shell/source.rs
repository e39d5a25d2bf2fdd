//! Characters of a script, with lines that end in a backslash joined.

/// A position in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The remaining text, without joining lines.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character, without joining lines.
    pub(super) fn raw(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the next character, without joining lines.
    pub(super) fn take_raw(&mut self) -> Option<char> {
        let next = self.raw()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes everything up to and including the next line break.
    pub(super) fn take_line(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split('\n').next().unwrap_or_default();
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Some(line)
    }

    /// The next character.
    pub(super) fn next(&self) -> Option<char> {
        let mut ahead = *self;
        ahead.join();
        ahead.raw()
    }

    /// The character after the next one.
    pub(super) fn second(&self) -> Option<char> {
        let mut ahead = *self;
        ahead.take();
        ahead.next()
    }

    /// Takes the next character.
    pub(super) fn take(&mut self) -> Option<char> {
        self.join();
        self.take_raw()
    }

    /// Takes the next character if it is this one.
    pub(super) fn take_if(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        if found {
            self.take();
        }
        found
    }

    /// The next word, if it is short and nothing in it is quoted or expanded. It may be a reserved
    /// word.
    pub(super) fn plain_word(&self) -> Option<String> {
        const LONGEST: usize = "function".len();
        let mut ahead = *self;
        let mut word = String::new();
        while let Some(next) = ahead.take().filter(|next| !ends_word(*next)) {
            if word.len() >= LONGEST || matches!(next, '\\' | '\'' | '"' | '$' | '`') {
                return None;
            }
            word.push(next);
        }
        Some(word).filter(|word| !word.is_empty())
    }

    /// Takes `count` characters.
    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    /// The current position, in bytes.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text from `start` to the current position.
    pub(super) fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn join(&mut self) {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
    }
}

/// Whether an unquoted `c` ends a word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}
