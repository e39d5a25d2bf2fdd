//! A note: one short line about a task.

/// One line about a task below the watched one. Its text has no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line, indented, without a line break.
    pub text: String,
    /// How the line is colored.
    pub tone: Tone,
}

/// How a line is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// In the color of the terminal.
    Plain,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// A side remark.
    Faint,
}
