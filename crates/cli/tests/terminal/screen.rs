//! A terminal with a screen and a scrollback, which the program writes to.

use std::num::NonZeroU16;
use std::process::Command;

use vt100::Parser;

use crate::pty::Terminal;

/// Lines of scrollback.
const SCROLLBACK: usize = 10_000;

/// A program at a terminal.
pub(crate) struct Screen {
    terminal: Terminal,
    parser: Parser,
    /// Bytes that the parser has.
    fed: usize,
}

fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

impl Screen {
    pub(crate) fn start(command: Command, (rows, columns): (u16, u16)) -> Self {
        let terminal = Terminal::start(command);
        // A terminal that says it has no rows has some.
        let (rows, columns) = if rows == 0 { (24, 80) } else { (rows, columns) };
        Self { terminal, parser: Parser::new(nonzero(rows), nonzero(columns), SCROLLBACK), fed: 0 }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.terminal.press(keys);
    }

    /// A paste as a terminal sends it.
    pub(crate) fn paste(&mut self, text: &str) {
        self.terminal.press(&format!("\x1b[200~{text}\x1b[201~"));
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.screen_mut().set_size(nonzero(rows), nonzero(columns));
        self.terminal.resize(rows, columns);
    }

    /// Waits until the screen shows the text.
    pub(crate) fn until(&mut self, text: &str) {
        self.until_seen(text, |screen| screen.text().contains(text));
    }

    /// Waits until the program has written the text.
    pub(crate) fn until_bytes(&mut self, text: &str) {
        self.until_seen(text, |screen| screen.written().contains(text));
    }

    /// Waits until a line of the screen or of the scrollback has the text.
    pub(crate) fn until_written(&mut self, text: &str) {
        self.feed();
        while !self.all_lines().iter().any(|line| line.contains(text)) {
            if let Err(error) = self.terminal.receive() {
                panic!("`{text}` {error}:\n{}", self.text());
            }
            self.feed();
        }
    }

    /// Waits until the screen does not show the text any longer.
    pub(crate) fn until_gone(&mut self, text: &str) {
        self.until_seen(text, |screen| !screen.text().contains(text));
    }

    /// Waits until the text is the last on the screen.
    pub(crate) fn until_last(&mut self, text: &str) {
        self.until_seen(text, |screen| screen.text().ends_with(text));
    }

    fn until_seen(&mut self, what: &str, is_seen: impl Fn(&Self) -> bool) {
        self.feed();
        while !is_seen(self) {
            if let Err(error) = self.terminal.receive() {
                panic!("`{what}` {error}:\n{}", self.text());
            }
            self.feed();
        }
    }

    fn feed(&mut self) {
        let written = self.terminal.bytes();
        self.parser.process(&written[self.fed..]);
        self.fed = written.len();
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        let contents = self.parser.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// What the program has switched on: the alternate screen, marks around pastes, a hidden cursor.
    pub(crate) fn switched_on(&self) -> (bool, bool, bool) {
        let screen = self.parser.screen();
        (screen.alternate_screen(), screen.bracketed_paste(), screen.hide_cursor())
    }

    /// Row and column of the cursor.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// Every line since the beginning: the scrollback and the screen.
    pub(crate) fn all_lines(&mut self) -> Vec<String> {
        let screen = self.parser.screen_mut();
        let columns = screen.size().1.get();
        screen.set_scrollback(usize::MAX);
        let mut lines = Vec::new();
        for above in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(above);
            lines.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, columns));
        lines
    }

    /// Every byte that the program wrote.
    pub(crate) fn written(&self) -> String {
        self.terminal.text()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        self.terminal.signal(signal);
    }

    /// Waits until the program ends: its exit code, and every byte that it wrote.
    pub(crate) fn end(self) -> (i32, String) {
        self.terminal.end()
    }

    /// Closes the terminal, and waits until the processes at it have ended.
    pub(crate) fn hang_up(self) {
        self.terminal.hang_up();
    }

    /// Quits with an empty prompt.
    pub(crate) fn quit(mut self) -> String {
        self.press("\x04");
        let (code, written) = self.end();
        assert_eq!(code, 0, "{written}");
        written
    }
}
