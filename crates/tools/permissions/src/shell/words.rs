//! Words, and the quotes in them.

use super::source::ends_word;
use super::word::Word;
use super::{ParseResult, Reader, unsupported};

impl Reader<'_, '_> {
    /// Parses a word. The next character must not end a word.
    pub(super) fn word(&mut self) -> ParseResult<Word> {
        let start = self.source.position();
        let mut word = Word::default();
        while let Some(next) = self.source.next() {
            if self.at_process() {
                self.only_bash("<(…)")?;
                self.source.skip(2);
                self.substitution()?;
                word.push_unknown();
                continue;
            }
            if ends_word(next) {
                break;
            }
            self.word_part(next, &mut word)?;
        }
        let raw = self.source.since(start);
        word.set_raw(raw.trim_start_matches("\\\n"));
        self.script.subscript |= word.has_subscript();
        Ok(word)
    }

    /// Whether `<(…)` or `>(…)` is next.
    pub(super) fn at_process(&self) -> bool {
        matches!(self.source.next(), Some('<' | '>')) && self.source.second() == Some('(')
    }

    fn word_part(&mut self, next: char, word: &mut Word) -> ParseResult<()> {
        match next {
            '\\' => {
                self.source.take();
                word.quote();
                word.push(self.source.take_raw().unwrap_or('\\'));
            }
            '\'' => self.single_quotes(word)?,
            '"' => self.double_quotes(word)?,
            '$' => self.dollar(word, Quotes::None)?,
            '`' => self.backticks(word, Quotes::None)?,
            '*' | '?' => {
                self.source.take();
                word.push_splitting();
            }
            '[' => self.bracket(word)?,
            '{' => self.brace(word),
            '~' if word.plain() == Some("") => {
                self.source.take();
                word.push_unknown();
            }
            '=' => self.equals(word)?,
            _ => {
                self.source.take();
                word.push(next);
            }
        }
        Ok(())
    }

    pub(super) fn single_quotes(&mut self, word: &mut Word) -> ParseResult<()> {
        self.source.take();
        word.quote();
        loop {
            match self.source.take_raw() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(c),
                None => return unsupported("a single quote is not closed"),
            }
        }
    }

    pub(super) fn double_quotes(&mut self, word: &mut Word) -> ParseResult<()> {
        self.source.take();
        word.quote();
        self.deeper(|reader| {
            loop {
                match reader.source.next() {
                    None => return unsupported("a double quote is not closed"),
                    Some('"') => {
                        reader.source.take();
                        return Ok(());
                    }
                    Some('\\') => {
                        reader.source.take();
                        match reader.source.take_raw() {
                            Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                            Some(c) => {
                                word.push('\\');
                                word.push(c);
                            }
                            None => return unsupported("a double quote is not closed"),
                        }
                    }
                    Some('$') => reader.dollar(word, Quotes::Double)?,
                    Some('`') => reader.backticks(word, Quotes::Double)?,
                    Some(c) => {
                        reader.source.take();
                        word.push(c);
                    }
                }
            }
        })
    }

    /// `[`: the command of that name, a pattern, or a subscript.
    fn bracket(&mut self, word: &mut Word) -> ParseResult<()> {
        self.source.take();
        let alone = word.plain() == Some("") && self.source.next().is_none_or(ends_word);
        let name = word.plain().filter(|head| is_name(head)).map(str::to_owned);
        if alone {
            word.push('[');
            return Ok(());
        }
        word.push_splitting();
        match name {
            Some(name) => self.subscript(&name, word),
            None => Ok(()),
        }
    }

    /// A subscript may contain characters that end words elsewhere, so its end must be unambiguous.
    fn subscript(&mut self, name: &str, word: &mut Word) -> ParseResult<()> {
        let mut inside = Word::default();
        loop {
            match self.source.next() {
                None => return unsupported("a `[` is not closed"),
                Some(']') => break,
                Some('[') => return unsupported("there is a `[` in a subscript"),
                Some(c) if ends_word(c) => {
                    return unsupported(format!("there is `{c}` in a subscript"));
                }
                Some(c) => self.word_part(c, &mut inside)?,
            }
        }
        self.source.take();
        self.script.subscript |= inside.has_expansion();
        if self.source.next() == Some('=')
            || (self.source.next() == Some('+') && self.source.second() == Some('='))
        {
            self.script.evaluates = true;
            word.set_assigns(name);
        }
        Ok(())
    }

    /// `{`: the start of a brace expansion, or itself.
    fn brace(&mut self, word: &mut Word) {
        self.source.take();
        let alone = word.is_plain("") && self.source.next().is_none_or(ends_word);
        if alone || self.source.next() == Some('}') {
            word.push('{');
        } else {
            word.push_splitting();
        }
    }

    fn equals(&mut self, word: &mut Word) -> ParseResult<()> {
        self.source.take();
        let name = word.plain().map(|head| head.strip_suffix('+').unwrap_or(head));
        if let Some(name) = name.filter(|name| is_name(name)).map(str::to_owned) {
            word.set_assigns(&name);
        }
        word.push('=');
        if word.assigns().is_some() && self.source.next() == Some('(') {
            self.only_bash("=(…)")?;
            return self.array(word);
        }
        Ok(())
    }

    /// The values of an array.
    fn array(&mut self, word: &mut Word) -> ParseResult<()> {
        if self.in_array {
            return unsupported("there is an array in an array");
        }
        self.in_array = true;
        self.source.take();
        word.push_unknown();
        self.deeper(|reader| {
            loop {
                reader.line_breaks()?;
                match reader.source.next() {
                    None => return unsupported("the values of an array are not closed"),
                    Some(')') => {
                        reader.source.take();
                        reader.in_array = false;
                        return Ok(());
                    }
                    Some(c) if ends_word(c) && !reader.at_process() => {
                        return unsupported(format!(
                            "there is `{c}` between the values of an array"
                        ));
                    }
                    Some('[') => {
                        reader.source.take();
                        reader.subscript("", &mut Word::default())?;
                        if !reader.source.next().is_none_or(ends_word) {
                            reader.word()?;
                        }
                    }
                    Some(_) => {
                        reader.word()?;
                    }
                }
            }
        })
    }
}

/// Quotes around an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// No quotes: bash splits the result into words.
    None,
    /// Double quotes, or a here-document.
    Double,
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
