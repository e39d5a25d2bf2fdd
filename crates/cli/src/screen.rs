//! The transcript of a task on this process's standard output and standard error.

use std::io::IsTerminal;

use antiphon_core::{Event, PriceTable, TaskId, UsageRecorded};
use antiphon_runtime::Delta;
use antiphon_view::display::Destination;
use antiphon_view::{NotePlacement, Transcript, TranscriptOptions};

pub(crate) use antiphon_view::{Note, TranscriptFormat};

use crate::failure::Failure;
use crate::terminal;

/// A transcript that is written to the terminal.
pub(crate) struct Screen {
    transcript: Transcript,
}

impl Screen {
    pub(crate) fn new(format: TranscriptFormat, prices: PriceTable) -> Self {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let on_terminal = (stdout.is_terminal(), stderr.is_terminal());
        let inline = format == TranscriptFormat::Result || on_terminal == (true, true);
        let options = TranscriptOptions {
            format,
            answers: match format {
                TranscriptFormat::Result => Box::new(std::io::stderr()),
                TranscriptFormat::Text | TranscriptFormat::Json => Box::new(stdout),
            },
            notes: Box::new(stderr),
            note_placement: if inline { NotePlacement::Inline } else { NotePlacement::Separate },
            destination: Destination::of(match format {
                TranscriptFormat::Result => on_terminal.1,
                TranscriptFormat::Text | TranscriptFormat::Json => on_terminal.0,
            }),
            status_line: format != TranscriptFormat::Json && on_terminal.1,
            colors: terminal::stderr_colors(),
            prices,
        };
        Self { transcript: Transcript::new(options) }
    }

    pub(crate) fn has_status_line(&self) -> bool {
        self.transcript.has_status_line()
    }

    pub(crate) fn is_json(&self) -> bool {
        self.transcript.is_json()
    }

    pub(crate) fn set_waiting(&mut self, waiting: Option<String>) {
        self.transcript.set_waiting(waiting);
    }

    pub(crate) fn add_usage(&mut self, recorded: &UsageRecorded) {
        self.transcript.add_usage(recorded);
    }

    /// Draws the status line.
    pub(crate) fn tick(&mut self) {
        self.transcript.tick(terminal::width().saturating_sub(1));
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> Result<(), Failure> {
        self.transcript.delta(delta).map_err(|error| Failure::unwritable(&error))
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), Failure> {
        self.transcript.event(event).map_err(|error| Failure::unwritable(&error))
    }

    pub(crate) fn missed(&mut self, task_id: &TaskId, count: u64) -> Result<(), Failure> {
        self.transcript.missed(task_id, count).map_err(|error| Failure::unwritable(&error))
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.transcript.note(text);
    }

    /// Writes lines with colors. The caller has escaped everything else in them.
    pub(crate) fn styled_lines(&mut self, lines: &[String]) {
        self.transcript.styled_note(&lines.join("\n"));
    }

    pub(crate) fn note_about_descendant(&mut self, note: &Note) {
        self.transcript.note_about_descendant(note);
    }

    /// Ends the line of the answer and erases the status line.
    pub(crate) fn finish(&mut self) {
        self.transcript.end_line();
        self.transcript.clear_status();
    }
}
