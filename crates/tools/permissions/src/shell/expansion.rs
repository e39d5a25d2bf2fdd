//! Expansions: syntax that begins with `$` or a backtick.

use super::list::ListEnd;
use super::word::Word;
use super::words::{Quotes, is_name};
use super::{NestedText, ParseResult, Reader, ansi_c, unsupported};

impl Reader<'_, '_> {
    pub(super) fn dollar(&mut self, word: &mut Word, quotes: Quotes) -> ParseResult<()> {
        self.source.take();
        match self.source.next() {
            Some('(') if self.source.second() == Some('(') => {
                self.source.skip(2);
                self.arithmetic()?;
                word.push_unknown();
            }
            Some('(') => {
                self.source.take();
                self.substitution()?;
                push_expansion(word, quotes);
            }
            Some('{') => {
                self.source.take();
                self.deeper(|reader| reader.parameter(word, quotes))?;
            }
            Some('[') => return unsupported("`$[` is written for `$((`"),
            Some('\'') if quotes == Quotes::None => {
                self.only_bash("$'…'")?;
                self.source.take();
                ansi_c::read(&mut self.source, word)?;
            }
            Some('"') if quotes == Quotes::None => {
                self.only_bash("$\"…\"")?;
                self.double_quotes(word)?;
            }
            Some('@') => {
                self.source.take();
                word.push_splitting();
            }
            Some('0'..='9' | '*' | '#' | '?' | '-' | '$' | '!') => {
                self.source.take();
                push_expansion(word, quotes);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.source.next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.source.take();
                }
                push_expansion(word, quotes);
            }
            Some(_) | None => word.push('$'),
        }
        Ok(())
    }

    /// Continues after `$(`, `<(` or `>(`.
    pub(super) fn substitution(&mut self) -> ParseResult<()> {
        let in_array = std::mem::take(&mut self.in_array);
        let outside = std::mem::take(&mut self.pending);
        self.pending_outside += outside.len();
        self.deeper(|reader| reader.list(ListEnd::Parenthesis))?;
        self.source.take();
        if !self.pending.is_empty() {
            return unsupported("a here-document begins in a substitution and has no body there");
        }
        self.pending_outside -= outside.len();
        self.pending = outside;
        self.in_array = in_array;
        Ok(())
    }

    /// Continues after `((`: arithmetic, of which only expansions matter here.
    pub(super) fn arithmetic(&mut self) -> ParseResult<()> {
        self.script.evaluates = true;
        self.deeper(|reader| {
            let mut open = 0_usize;
            loop {
                match reader.source.next() {
                    None => return unsupported("a `((` is not closed"),
                    Some('(') => open += 1,
                    Some(')') if open > 0 => open -= 1,
                    Some(')') if reader.source.second() == Some(')') => {
                        reader.source.skip(2);
                        return Ok(());
                    }
                    Some(')') => {
                        return unsupported("`((` is not the start of a number; write `( (`");
                    }
                    Some('$') => {
                        reader.dollar(&mut Word::default(), Quotes::Double)?;
                        continue;
                    }
                    Some('"') => {
                        reader.double_quotes(&mut Word::default())?;
                        continue;
                    }
                    Some(c @ ('\'' | '\\' | '`')) => {
                        return unsupported(format!("there is `{c}` between `((` and `))`"));
                    }
                    Some(_) => {}
                }
                reader.source.take();
            }
        })
    }

    /// Continues after `${`.
    fn parameter(&mut self, word: &mut Word, quotes: Quotes) -> ParseResult<()> {
        match self.source.next() {
            Some(' ' | '\t' | '\n' | '|' | '(' | ';' | '&') => {
                return unsupported("`${` is not the start of a parameter");
            }
            // The value of one parameter names another, subscript and all.
            Some('!') => self.script.evaluates = true,
            Some(_) | None => {}
        }
        let mut inner = Word::default();
        let mut lists = false;
        loop {
            match self.source.next() {
                None => return unsupported("a `${` is not closed"),
                Some('}') => break,
                Some('\\') => {
                    self.source.take();
                    self.source.take_raw();
                    inner.quote();
                }
                Some('\'') if quotes == Quotes::None => self.single_quotes(&mut inner)?,
                Some('\'') => return unsupported("there is a single quote in a `${…}` in quotes"),
                Some('"') => self.double_quotes(&mut inner)?,
                Some('$') => self.dollar(&mut inner, quotes)?,
                Some('`') => self.backticks(&mut inner, quotes)?,
                Some('{') => return unsupported("there is a `{` in a `${…}`"),
                Some('<' | '>') if self.at_process() => {
                    self.only_bash("<(…)")?;
                    self.source.skip(2);
                    self.substitution()?;
                }
                Some(c) => {
                    self.source.take();
                    self.parameter_part(c, &inner)?;
                    lists |= matches!(c, '@' | '*');
                    inner.push(c);
                }
            }
        }
        self.source.take();
        self.script.subscript |= inner.has_subscript();
        if lists {
            word.push_splitting();
        } else {
            push_expansion(word, quotes);
        }
        Ok(())
    }

    /// Records the side effects of an operator in `${…}`.
    fn parameter_part(&mut self, c: char, before: &Word) -> ParseResult<()> {
        match c {
            '@' if self.source.next() == Some('P') => {
                return unsupported("`${…@P}` runs what is in a variable");
            }
            '[' => self.script.evaluates = true,
            // `:-`, `:=`, `:?` and `:+` aside, a number follows.
            ':' if !matches!(self.source.next(), Some('-' | '=' | '?' | '+')) => {
                self.script.evaluates = true;
            }
            '=' => {
                let name = before.plain().map(|name| name.trim_end_matches(':'));
                if let Some(name) = name.filter(|name| is_name(name)) {
                    self.script.sets.push(name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn backticks(&mut self, word: &mut Word, quotes: Quotes) -> ParseResult<()> {
        self.source.take();
        let mut inner = String::new();
        loop {
            match self.source.take_raw() {
                None => return unsupported("a backtick is not closed"),
                Some('`') => break,
                Some('\\') => match self.source.take_raw() {
                    None => return unsupported("a backtick is not closed"),
                    Some(c @ ('`' | '$' | '\\')) => inner.push(c),
                    // Whether quotes keep it depends on what is around the backticks.
                    Some('\n') => return unsupported("a line continues between backticks"),
                    Some('"') if quotes == Quotes::Double => {
                        return unsupported("there is `\\\"` between backticks in quotes");
                    }
                    Some(c) => {
                        inner.push('\\');
                        inner.push(c);
                    }
                },
                Some(c) => inner.push(c),
            }
        }
        self.within(&inner, NestedText::Script)?;
        push_expansion(word, quotes);
        Ok(())
    }
}

fn push_expansion(word: &mut Word, quotes: Quotes) {
    match quotes {
        Quotes::None => word.push_splitting(),
        Quotes::Double => word.push_unknown(),
    }
}
