//! Colors of text, as escape sequences of a terminal.

use crate::note::Tone;

/// Whether text is colored. Every method returns the text unchanged when it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// Text gets escape sequences.
    On,
    /// Text stays as it is.
    Off,
}

impl Colors {
    /// In bold.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// In faint color.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// In red.
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// In green.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// In yellow.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// In cyan.
    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// In the color of a tone.
    pub fn toned(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.green(text),
            Tone::Bad => self.red(text),
            Tone::Faint => self.dim(text),
        }
    }

    /// A line of a diff: green when added, red when removed, else faint.
    pub fn diff_line(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.green(line),
            Some(b'-') => self.red(line),
            _ => self.dim(line),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Off => text.to_owned(),
        }
    }
}
