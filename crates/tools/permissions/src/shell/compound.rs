//! Commands made of commands.

use super::list::Stop;
use super::words::is_name;
use super::{Read, Reader, Simple, unclear};

impl Reader<'_, '_> {
    /// Reads one command of any kind.
    pub(super) fn command(&mut self) -> Read<()> {
        self.blanks();
        if self.source.next() == Some('(') {
            if self.source.second() == Some('(') {
                self.only_bash("((…))")?;
                self.source.skip(2);
                self.arithmetic()?;
            } else {
                self.source.take();
                self.list(Stop::Parenthesis)?;
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
                self.list(Stop::Words(&["do"]))?;
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
            "coproc" => return unclear("it starts a coprocess"),
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}" | "]]" | "!" => {
                return unclear(format!("`{word}` is not expected here"));
            }
            _ => return self.simple(),
        }
        self.redirects()
    }

    /// Reads on after `{`.
    fn braces(&mut self) -> Read<()> {
        self.list(Stop::Words(&["}"]))?;
        self.source.skip(1);
        Ok(())
    }

    fn conditional(&mut self) -> Read<()> {
        self.source.skip(2);
        loop {
            self.list(Stop::Words(&["then"]))?;
            self.source.skip(4);
            self.list(Stop::Words(&["elif", "else", "fi"]))?;
            match self.source.plain_word().as_deref() {
                Some("elif") => self.source.skip(4),
                Some("else") => {
                    self.source.skip(4);
                    self.list(Stop::Words(&["fi"]))?;
                    break;
                }
                Some(_) | None => break,
            }
        }
        self.source.skip(2);
        Ok(())
    }

    /// `do … done`, or braces, which bash takes after `for` as well.
    fn loop_body(&mut self) -> Read<()> {
        match self.source.plain_word().as_deref() {
            Some("do") => {
                self.source.skip(2);
                self.list(Stop::Words(&["done"]))?;
                self.source.skip(4);
                Ok(())
            }
            Some("{") => {
                self.source.skip(1);
                self.braces()
            }
            Some(_) | None => unclear("a loop has no `do`"),
        }
    }

    fn repetition(&mut self, keyword: &str) -> Read<()> {
        self.source.skip(keyword.len());
        self.blanks();
        if self.source.next() == Some('(') && self.source.second() == Some('(') {
            self.only_bash("for ((…))")?;
            self.source.skip(2);
            self.arithmetic()?;
        } else {
            let name = self.word()?;
            let Some(name) = name.plain().filter(|name| is_name(name)) else {
                return unclear("a loop has no variable");
            };
            self.add(Simple { assigns: vec![name.to_owned()], ..Simple::default() })?;
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

    fn values(&mut self) -> Read<()> {
        loop {
            self.blanks();
            match self.source.next() {
                None | Some('\n' | ';') => return Ok(()),
                Some('&' | '|' | '(' | ')') => return unclear("a loop has no `do`"),
                Some('<' | '>') if !self.at_process() => return unclear("a loop has no `do`"),
                Some(_) => {
                    self.word()?;
                }
            }
        }
    }

    fn case(&mut self) -> Read<()> {
        self.source.skip(4);
        self.blanks();
        self.word()?;
        self.line_breaks()?;
        if self.source.plain_word().as_deref() != Some("in") {
            return unclear("a `case` has no `in`");
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
            self.list(Stop::Case)?;
            if self.source.next() == Some(';') {
                self.source.skip(2);
                self.source.take_if('&');
            }
        }
    }

    fn case_patterns(&mut self) -> Read<()> {
        loop {
            self.blanks();
            let pattern = self.word()?;
            if pattern.raw().is_empty() {
                return unclear("a `case` has an empty pattern");
            }
            self.blanks();
            match self.source.take() {
                Some('|') => {}
                Some(')') => return Ok(()),
                Some(_) | None => return unclear("a pattern of a `case` does not end"),
            }
        }
    }

    /// `function name [()] body`
    fn named_function(&mut self) -> Read<()> {
        self.only_bash("function")?;
        self.source.skip("function".len());
        self.blanks();
        let name = self.word()?;
        let Some(name) = name.literal().filter(|name| !name.is_empty()) else {
            return unclear("a function has no name");
        };
        self.blanks();
        if self.source.take_if('(') {
            self.blanks();
            if !self.source.take_if(')') {
                return unclear("`(` is not expected here");
            }
        }
        self.function_body(name)
    }
}
