//! Color, where it is wanted.

use std::io::IsTerminal;

/// Colors text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ink {
    wanted: bool,
}

impl Ink {
    /// For standard error: on a terminal, unless `NO_COLOR` says otherwise.
    pub(crate) fn for_stderr() -> Self {
        Self::on(std::io::stderr().is_terminal())
    }

    /// The same for standard output.
    pub(crate) fn for_stdout() -> Self {
        Self::on(std::io::stdout().is_terminal())
    }

    fn on(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { wanted: terminal && !refused && !dumb }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// A line of a diff.
    pub(crate) fn diff_line(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.green(line),
            Some(b'-') => self.red(line),
            _ => self.dim(line),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
