//! Here-documents: input that follows the line of the command.

use super::source::ends_word;
use super::word::Word;
use super::words::Quotes;
use super::{NestedText, ParseResult, Reader, unsupported};

/// A here-document whose body has not been read yet.
#[derive(Debug)]
pub(super) struct PendingHereDocument {
    delimiter: String,
    /// The delimiter is quoted: bash expands nothing in the body.
    quoted: bool,
    /// Bash removes tabs at the start of each line.
    tabs: bool,
}

impl Reader<'_, '_> {
    /// Parses the delimiter after `<<`.
    pub(super) fn here_document(&mut self) -> ParseResult<()> {
        let tabs = self.source.take_if('-');
        self.blanks();
        let mut delimiter = Word::default();
        let mut quoted = false;
        while let Some(next) = self.source.next().filter(|next| !ends_word(*next)) {
            match next {
                '\'' => self.single_quotes(&mut delimiter)?,
                '"' => self.double_quotes(&mut delimiter)?,
                '\\' => {
                    self.source.take();
                    delimiter.push(self.source.take_raw().unwrap_or('\\'));
                }
                '$' | '`' => return unsupported("the delimiter of a here-document is expanded"),
                _ => {
                    self.source.take();
                    delimiter.push(next);
                }
            }
            quoted |= matches!(next, '\'' | '"' | '\\');
        }
        match delimiter.literal() {
            Some(text) if !text.contains('\n') && (quoted || !text.is_empty()) => {
                self.pending.push(PendingHereDocument { delimiter: text.to_owned(), quoted, tabs });
                Ok(())
            }
            Some(_) | None => unsupported("the delimiter of a here-document cannot be parsed"),
        }
    }

    /// Parses the pending bodies after a line break.
    pub(super) fn here_bodies(&mut self) -> ParseResult<()> {
        if self.pending_outside > 0 {
            return unsupported(
                "a line ends in a substitution while a here-document waits outside",
            );
        }
        for pending in std::mem::take(&mut self.pending) {
            let body = self.here_body(&pending)?;
            if !pending.quoted {
                self.within(&body, NestedText::HereDocument)?;
            }
        }
        Ok(())
    }

    fn here_body(&mut self, pending: &PendingHereDocument) -> ParseResult<String> {
        let mut body = String::new();
        loop {
            let Some(mut line) = self.source.take_line().map(str::to_owned) else {
                return unsupported(format!(
                    "the here-document has no end `{}`",
                    pending.delimiter
                ));
            };
            while !pending.quoted && ends_in_escape(&line) {
                line.pop();
                match self.source.take_line() {
                    Some(more) => line.push_str(more),
                    None => break,
                }
            }
            let line = if pending.tabs { line.trim_start_matches('\t') } else { &line };
            if line == pending.delimiter {
                return Ok(body);
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// Parses a body, in which only expansions matter.
    pub(super) fn here_text(&mut self) -> ParseResult<()> {
        let mut text = Word::default();
        while let Some(next) = self.source.next() {
            match next {
                '\\' => {
                    self.source.take();
                    self.source.take_raw();
                }
                '$' => self.dollar(&mut text, Quotes::Double)?,
                '`' => self.backticks(&mut text, Quotes::Double)?,
                _ => {
                    self.source.take();
                }
            }
        }
        Ok(())
    }
}

fn ends_in_escape(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}
