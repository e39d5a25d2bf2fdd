//! Here-documents: input that is written below the command.

use super::source::ends_word;
use super::word::Word;
use super::words::Quotes;
use super::{Inner, Read, Reader, unclear};

/// A here-document whose body is still to come.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: String,
    /// Nothing in the body is expanded.
    quoted: bool,
    /// Tabs at the start of a line do not count.
    tabs: bool,
}

impl Reader<'_, '_> {
    /// Reads on after `<<`: the delimiter.
    pub(super) fn here_document(&mut self) -> Read<()> {
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
                '$' | '`' => return unclear("the delimiter of a here-document is expanded"),
                _ => {
                    self.source.take();
                    delimiter.push(next);
                }
            }
            quoted |= matches!(next, '\'' | '"' | '\\');
        }
        match delimiter.literal() {
            Some(text) if !text.contains('\n') && (quoted || !text.is_empty()) => {
                self.pending.push(Pending { delimiter: text.to_owned(), quoted, tabs });
                Ok(())
            }
            Some(_) | None => unclear("the delimiter of a here-document is not understood"),
        }
    }

    /// Reads on after a line break: the bodies that wait for it.
    pub(super) fn here_bodies(&mut self) -> Read<()> {
        if self.pending_outside > 0 {
            return unclear("a line ends in a substitution while a here-document waits outside");
        }
        for pending in std::mem::take(&mut self.pending) {
            let body = self.here_body(&pending)?;
            if !pending.quoted {
                self.within(&body, Inner::HereDocument)?;
            }
        }
        Ok(())
    }

    fn here_body(&mut self, pending: &Pending) -> Read<String> {
        let mut body = String::new();
        loop {
            let Some(mut line) = self.source.take_line().map(str::to_owned) else {
                return unclear(format!("the here-document has no end `{}`", pending.delimiter));
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

    /// The body itself, in which only expansions count.
    pub(super) fn here_text(&mut self) -> Read<()> {
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
