//! Compound commands.

use super::list::ListEnd;
use super::words::is_name;
use super::{Assignment, ParseResult, Reader, SimpleCommand, unsupported};

impl Reader<'_, '_> {
    /// Parses one command of any kind.
    pub(super) fn command(&mut self) -> ParseResult<()> {
        self.blanks();
        if self.source.next() == Some('(') {
            if self.source.second() == Some('(') {
                self.only_bash("((…))")?;
                self.source.skip(2);
                self.arithmetic()?;
            } else {
                self.source.take();
                self.list(ListEnd::Parenthesis)?;
                self.source.take();
            }
            return self.redirects();
        }
        let Some(word) = self.source.plain_word() else {
            return self.simple();
        };
        match word.as_str() {
            "{" => {
                self.source.skip(1);
                self.braces()?;
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                self.source.skip(word.len());
                self.list(ListEnd::Words(&["do"]))?;
                self.loop_body()?;
            }
            "for" | "select" => self.repetition(&word)?,
            "case" => self.case()?,
            "[[" => {
                self.only_bash("[[")?;
                self.source.skip(2);
                self.test_expression()?;
            }
            "function" => return self.named_function(),
            "coproc" => return unsupported("it starts a coprocess"),
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}" | "]]" | "!" => {
                return unsupported(format!("`{word}` is not expected here"));
            }
            _ => return self.simple(),
        }
        self.redirects()
    }

    /// Continues after `{`.
    fn braces(&mut self) -> ParseResult<()> {
        self.list(ListEnd::Words(&["}"]))?;
        self.source.skip(1);
        Ok(())
    }

    fn conditional(&mut self) -> ParseResult<()> {
        self.source.skip(2);
        loop {
            self.list(ListEnd::Words(&["then"]))?;
            self.source.skip(4);
            self.list(ListEnd::Words(&["elif", "else", "fi"]))?;
            match self.source.plain_word().as_deref() {
                Some("elif") => self.source.skip(4),
                Some("else") => {
                    self.source.skip(4);
                    self.list(ListEnd::Words(&["fi"]))?;
                    break;
                }
                Some(_) | None => break,
            }
        }
        self.source.skip(2);
        Ok(())
    }

    /// `do … done`, or braces, which bash also accepts after `for`.
    fn loop_body(&mut self) -> ParseResult<()> {
        match self.source.plain_word().as_deref() {
            Some("do") => {
                self.source.skip(2);
                self.list(ListEnd::Words(&["done"]))?;
                self.source.skip(4);
                Ok(())
            }
            Some("{") => {
                self.source.skip(1);
                self.braces()
            }
            Some(_) | None => unsupported("a loop has no `do`"),
        }
    }

    fn repetition(&mut self, keyword: &str) -> ParseResult<()> {
        self.source.skip(keyword.len());
        self.blanks();
        if self.source.next() == Some('(') && self.source.second() == Some('(') {
            self.only_bash("for ((…))")?;
            self.source.skip(2);
            self.arithmetic()?;
        } else {
            let name = self.word()?;
            let Some(name) = name.plain().filter(|name| is_name(name)) else {
                return unsupported("a loop has no variable");
            };
            let assigns = vec![Assignment { name: name.to_owned(), value: None }];
            self.add(SimpleCommand { assigns, ..SimpleCommand::default() })?;
            self.line_breaks()?;
            if self.source.plain_word().as_deref() == Some("in") {
                self.source.skip(2);
                self.values()?;
            }
        }
        self.blanks();
        self.source.take_if(';');
        self.line_breaks()?;
        self.loop_body()
    }

    fn values(&mut self) -> ParseResult<()> {
        loop {
            self.blanks();
            match self.source.next() {
                None | Some('\n' | ';') => return Ok(()),
                Some('&' | '|' | '(' | ')') => return unsupported("a loop has no `do`"),
                Some('<' | '>') if !self.at_process() => return unsupported("a loop has no `do`"),
                Some(_) => {
                    self.word()?;
                }
            }
        }
    }

    fn case(&mut self) -> ParseResult<()> {
        self.source.skip(4);
        self.blanks();
        self.word()?;
        self.line_breaks()?;
        if self.source.plain_word().as_deref() != Some("in") {
            return unsupported("a `case` has no `in`");
        }
        self.source.skip(2);
        loop {
            self.line_breaks()?;
            if self.source.plain_word().as_deref() == Some("esac") {
                self.source.skip(4);
                return Ok(());
            }
            self.source.take_if('(');
            self.case_patterns()?;
            self.list(ListEnd::Case)?;
            if self.source.next() == Some(';') {
                self.source.skip(2);
                self.source.take_if('&');
            }
        }
    }

    fn case_patterns(&mut self) -> ParseResult<()> {
        loop {
            self.blanks();
            let pattern = self.word()?;
            if pattern.raw().is_empty() {
                return unsupported("a `case` has an empty pattern");
            }
            self.blanks();
            match self.source.take() {
                Some('|') => {}
                Some(')') => return Ok(()),
                Some(_) | None => return unsupported("a pattern of a `case` does not end"),
            }
        }
    }

    /// `function name [()] body`
    fn named_function(&mut self) -> ParseResult<()> {
        self.only_bash("function")?;
        self.source.skip("function".len());
        self.blanks();
        let name = self.word()?;
        let Some(name) = name.literal().filter(|name| !name.is_empty()) else {
            return unsupported("a function has no name");
        };
        self.blanks();
        if self.source.take_if('(') {
            self.blanks();
            if !self.source.take_if(')') {
                return unsupported("`(` is not expected here");
            }
        }
        self.function_body(name)
    }
}
