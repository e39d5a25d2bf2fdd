//! How a transcript is written, and where to.

use std::io::Write;

use antiphon_core::PriceTable;

use crate::colors::Colors;
use crate::display::Destination;

/// How a task is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// Its text as it arrives.
    Text,
    /// Its text among the notes; the caller prints the result.
    Result,
    /// Every event and delta, one JSON object per line.
    Json,
}

/// Where notes appear in relation to the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotePlacement {
    /// On the same screen: a note starts on a line of its own.
    Inline,
    /// Elsewhere, so a note does not end the line of an answer.
    Separate,
}

/// How a transcript is written.
pub struct TranscriptOptions {
    /// How the task is shown.
    pub format: TranscriptFormat,
    /// Gets the answers, or the lines of JSON. Errors of it are returned.
    pub answers: Box<dyn Write + Send>,
    /// Gets notes and the status line. Errors of it are ignored: the reader may be gone.
    pub notes: Box<dyn Write + Send>,
    /// Where notes appear in relation to the answers.
    pub note_placement: NotePlacement,
    /// Where the answers are written to.
    pub destination: Destination,
    /// Whether the status line is drawn.
    pub status_line: bool,
    /// Whether notes are colored.
    pub colors: Colors,
    /// Prices of models, for the status line.
    pub prices: PriceTable,
}
