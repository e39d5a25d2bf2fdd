//! Simple commands: assignments, a program, its arguments, its redirections.

use super::word::Word;
use super::words::is_name;
use super::{Assignment, ParseResult, Reader, Redirect, SimpleCommand, unsupported};

impl Reader<'_, '_> {
    pub(super) fn simple(&mut self) -> ParseResult<()> {
        let mut command = SimpleCommand::default();
        let mut empty = true;
        loop {
            self.blanks();
            match self.source.next() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if self.source.second() != Some('>') => break,
                Some('(') => return self.function(&command),
                Some('<' | '>') if self.at_process() => {
                    let word = self.word()?;
                    command.words.push(word);
                }
                Some('<' | '>' | '&') => self.redirect(&mut command)?,
                Some(_) => self.simple_word(&mut command)?,
            }
            empty = false;
        }
        if empty {
            return unsupported("a command is missing");
        }
        self.add(command)
    }

    fn simple_word(&mut self, command: &mut SimpleCommand) -> ParseResult<()> {
        if let Some(name) = self.descriptor_name() {
            // `{name}>file`: the shell sets the variable to the number of the descriptor.
            self.only_bash("{name}>")?;
            self.source.skip(name.len() + 2);
            command.assigns.push(Assignment { name, value: None });
            return Ok(());
        }
        let word = self.word()?;
        let number = word.plain().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
        if number && matches!(self.source.next(), Some('<' | '>')) {
            return Ok(());
        }
        match word.assigns() {
            Some(name) if command.words.is_empty() => {
                let value = word.literal().and_then(|text| text.split_once('='));
                let value = value.map(|(_, value)| value.to_owned());
                command.assigns.push(Assignment { name: name.to_owned(), value });
            }
            Some(_) | None => command.words.push(word),
        }
        Ok(())
    }

    fn descriptor_name(&self) -> Option<String> {
        let rest = self.source.rest().strip_prefix('{')?;
        let length =
            rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, after) = rest.split_at(length);
        let redirected = after.starts_with("}<") || after.starts_with("}>");
        (redirected && is_name(name)).then(|| name.to_owned())
    }

    /// Redirections after a compound command.
    pub(super) fn redirects(&mut self) -> ParseResult<()> {
        let mut command = SimpleCommand::default();
        loop {
            self.blanks();
            match self.source.next() {
                Some('<' | '>') => self.redirect(&mut command)?,
                Some('&') if self.source.second() == Some('>') => self.redirect(&mut command)?,
                Some(c) if c.is_ascii_digit() => self.simple_word(&mut command)?,
                Some(_) | None => break,
            }
            if !command.words.is_empty() {
                return unsupported("a number is not expected here");
            }
        }
        if command.files.is_empty() { Ok(()) } else { self.add(command) }
    }

    fn redirect(&mut self, command: &mut SimpleCommand) -> ParseResult<()> {
        if self.source.next() == Some('&') {
            self.only_bash("&>")?;
        }
        let operator = self.operator();
        if matches!(operator, Operator::HereDocument) {
            return self.here_document();
        }
        self.blanks();
        let path = self.word()?;
        if path.raw().is_empty() {
            return unsupported("a redirection leads nowhere");
        }
        if matches!(operator, Operator::Duplicate | Operator::DuplicateInput)
            && path.literal().is_none_or(|text| text.contains(['$', '`']))
        {
            // Bash expands this word twice.
            return unsupported("what `>&` leads to is expanded");
        }
        match operator {
            Operator::ParseResult => command.files.push(Redirect { writes: false, path }),
            Operator::Write => command.files.push(Redirect { writes: true, path }),
            Operator::Duplicate if !is_descriptor(&path) => {
                command.files.push(Redirect { writes: true, path });
            }
            Operator::HereString => {
                self.only_bash("<<<")?;
            }
            Operator::Duplicate | Operator::DuplicateInput | Operator::HereDocument => {}
        }
        Ok(())
    }

    fn operator(&mut self) -> Operator {
        if self.source.take_if('&') {
            self.source.take();
            self.source.take_if('>');
            return Operator::Write;
        }
        if self.source.take_if('>') {
            if self.source.take_if('&') {
                return Operator::Duplicate;
            }
            let _either = self.source.take_if('>') || self.source.take_if('|');
            return Operator::Write;
        }
        self.source.take();
        if self.source.take_if('<') {
            if self.source.take_if('<') {
                return Operator::HereString;
            }
            return Operator::HereDocument;
        }
        if self.source.take_if('&') {
            return Operator::DuplicateInput;
        }
        if self.source.take_if('>') { Operator::Write } else { Operator::ParseResult }
    }

    /// `name ( ) body`
    fn function(&mut self, command: &SimpleCommand) -> ParseResult<()> {
        let name = match (command.words.as_slice(), command.assigns.is_empty()) {
            ([name], true) if command.files.is_empty() => name.plain().map(str::to_owned),
            _ => None,
        };
        let Some(name) = name else {
            return unsupported("`(` is not expected here");
        };
        self.source.take();
        self.blanks();
        if !self.source.take_if(')') {
            return unsupported("`(` is not expected here");
        }
        self.function_body(&name)
    }

    pub(super) fn function_body(&mut self, name: &str) -> ParseResult<()> {
        self.script.functions.push(name.to_owned());
        self.line_breaks()?;
        self.deeper(Self::command)
    }
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    ParseResult,
    Write,
    Duplicate,
    DuplicateInput,
    HereDocument,
    HereString,
}

/// `1`, `-` or `1-`.
fn is_descriptor(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let number = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
