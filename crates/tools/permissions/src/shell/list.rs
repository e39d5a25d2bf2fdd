//! Lists of commands, separated by `;`, `&`, `&&`, `||`, `|` and line breaks.

use super::{ParseResult, Reader, unsupported};

/// Where a list ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnd {
    /// At the end of the text.
    End,
    /// Before `)`.
    Parenthesis,
    /// Before `;;`, `;&` or `esac`.
    Case,
    /// Before one of these words.
    Words(&'static [&'static str]),
}

impl Reader<'_, '_> {
    /// Parses a whole text.
    pub(super) fn program(&mut self) -> ParseResult<()> {
        self.list(ListEnd::End)?;
        if self.pending.is_empty() { Ok(()) } else { unsupported("a here-document has no body") }
    }

    /// Parses commands up to the end of the list. The caller consumes the end.
    pub(super) fn list(&mut self, stop: ListEnd) -> ParseResult<()> {
        loop {
            self.line_breaks()?;
            if self.at(stop)? {
                return Ok(());
            }
            self.and_or()?;
            self.blanks();
            match self.source.next() {
                Some(';') if matches!(self.source.second(), Some(';' | '&')) => {
                    if stop != ListEnd::Case {
                        return unsupported("there is `;;` outside of `case`");
                    }
                }
                Some(';' | '&') => {
                    self.source.take();
                }
                Some('\n') | None => {}
                Some(_) if self.at(stop)? => {}
                Some(c) => return unsupported(format!("`{c}` is not expected here")),
            }
        }
    }

    fn at(&self, stop: ListEnd) -> ParseResult<bool> {
        let next = self.source.next();
        Ok(match (stop, next) {
            (ListEnd::End, next) => next.is_none(),
            (_, None) => return unsupported("it ends in the middle of a command"),
            (ListEnd::Parenthesis, Some(next)) => next == ')',
            (ListEnd::Case, Some(next)) => {
                (next == ';' && matches!(self.source.second(), Some(';' | '&')))
                    || self.source.plain_word().as_deref() == Some("esac")
            }
            (ListEnd::Words(words), Some(_)) => {
                self.source.plain_word().is_some_and(|word| words.contains(&word.as_str()))
            }
        })
    }

    fn and_or(&mut self) -> ParseResult<()> {
        loop {
            self.pipeline()?;
            self.blanks();
            match self.source.next() {
                Some(c @ ('&' | '|')) if self.source.second() == Some(c) => self.source.skip(2),
                Some(_) | None => return Ok(()),
            }
            self.line_breaks()?;
        }
    }

    fn pipeline(&mut self) -> ParseResult<()> {
        loop {
            self.blanks();
            match self.source.plain_word().as_deref() {
                Some("!") => self.source.skip(1),
                Some("time") => {
                    self.source.skip(4);
                    self.blanks();
                    while let Some(option @ ("-p" | "--")) = self.source.plain_word().as_deref() {
                        self.source.skip(option.len());
                        self.blanks();
                    }
                }
                Some(_) | None => break,
            }
        }
        loop {
            self.deeper(Self::command)?;
            self.blanks();
            if self.source.next() != Some('|') || self.source.second() == Some('|') {
                return Ok(());
            }
            self.source.take();
            if self.source.take_if('&') {
                self.only_bash("|&")?;
            }
            self.line_breaks()?;
        }
    }

    /// Skips blanks and a comment.
    pub(super) fn blanks(&mut self) {
        while matches!(self.source.next(), Some(' ' | '\t')) {
            self.source.take();
        }
        if self.source.next() == Some('#') {
            while self.source.raw().is_some_and(|c| c != '\n') {
                self.source.take_raw();
            }
        }
    }

    /// Skips blanks, comments and line breaks, and the here-document bodies that follow a line break.
    pub(super) fn line_breaks(&mut self) -> ParseResult<()> {
        loop {
            self.blanks();
            if !self.source.take_if('\n') {
                return Ok(());
            }
            self.here_bodies()?;
        }
    }
}
