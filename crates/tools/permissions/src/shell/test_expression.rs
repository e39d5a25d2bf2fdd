//! `[[ … ]]`, of which only the expansions and the end matter.

use super::word::Word;
use super::words::Quotes;
use super::{ParseResult, Reader, unsupported};

impl Reader<'_, '_> {
    /// Continues after `[[`.
    pub(super) fn test_expression(&mut self) -> ParseResult<()> {
        loop {
            while matches!(self.source.next(), Some(' ' | '\t')) {
                self.source.take();
            }
            match self.source.next() {
                None => return unsupported("a `[[` is not closed"),
                // In a pattern `#` is part of the pattern, elsewhere it starts a comment.
                Some(c @ ('#' | ';')) => {
                    return unsupported(format!("there is `{c}` in `[[ … ]]`"));
                }
                Some('\n') if !self.pending.is_empty() => {
                    return unsupported("a here-document waits in `[[ … ]]`");
                }
                Some('<' | '>') if self.at_process() => {
                    self.word()?;
                }
                Some('\n' | '(' | ')' | '<' | '>' | '&' | '|') => {
                    self.source.take();
                }
                Some(_) => {
                    let word = self.word()?;
                    match word.plain() {
                        Some("]]") => return Ok(()),
                        Some("=~") => self.expression()?,
                        Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") => {
                            self.script.evaluates = true;
                        }
                        Some(_) | None => {}
                    }
                }
            }
        }
    }

    /// A regular expression: one word, in which parentheses and bars are characters.
    fn expression(&mut self) -> ParseResult<()> {
        while matches!(self.source.next(), Some(' ' | '\t')) {
            self.source.take();
        }
        let mut word = Word::default();
        let mut open = 0_usize;
        if self.source.next() == Some('#') {
            return unsupported("there is `#` in `[[ … ]]`");
        }
        while let Some(next) = self.source.next() {
            match next {
                ' ' | '\t' | '\n' if open == 0 => break,
                ' ' | '\t' | '\n' | '\'' | '"' | ';' | '&' | '<' | '>' | '`' => {
                    if open > 0 || matches!(next, ';' | '&' | '<' | '>' | '`') {
                        return unsupported(format!("there is {next:?} in a regular expression"));
                    }
                    match next {
                        '\'' => self.single_quotes(&mut word)?,
                        _ => self.double_quotes(&mut word)?,
                    }
                    continue;
                }
                '\\' => {
                    self.source.take();
                    self.source.take_raw();
                    continue;
                }
                '$' if matches!(self.source.second(), Some('\'' | '"')) => {
                    return unsupported("there is `$` before a quote in a regular expression");
                }
                '$' => {
                    self.dollar(&mut word, Quotes::Double)?;
                    continue;
                }
                '(' => open += 1,
                ')' => open = open.saturating_sub(1),
                _ => {}
            }
            self.source.take();
        }
        if open > 0 { unsupported("a regular expression is not closed") } else { Ok(()) }
    }
}
