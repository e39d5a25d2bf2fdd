//! What is told of a task that somebody else's task dispatched: one short line.

/// One line about a task below the one that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// How a line is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Something is done.
    Good,
    /// Something went wrong.
    Bad,
    /// By the way.
    Faint,
}
