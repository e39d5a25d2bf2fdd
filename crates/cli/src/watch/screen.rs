//! The transcript of a task on this process's standard output and standard error.

use std::io::{IsTerminal, Write};

use antiphon_core::{Event, PriceTable, TaskId, UsageRecorded};
use antiphon_project::settings::Theme;
use antiphon_runtime::Delta;
use antiphon_tui::{AnswerStyle, LineInput, LiveRows, LiveTerminal};
use antiphon_view::display::Destination;
use antiphon_view::{Colors, NotePlacement, Transcript, TranscriptOptions};

pub(crate) use antiphon_view::{Note, TranscriptFormat};

use crate::failure::Failure;
use crate::terminal;

/// A transcript that is written to the terminal.
pub(crate) struct Screen {
    transcript: Transcript,
    /// The rows beneath it, where something can be drawn again.
    live: Option<LiveTerminal>,
    /// The user is asked: the task waits, and its status would hide that.
    hint: &'static str,
    colors: Colors,
    is_plain: bool,
}

impl Screen {
    /// Draws in a theme where the output is a terminal. Without one, text is only added, without escape sequences.
    pub(crate) fn new(format: TranscriptFormat, prices: PriceTable, theme: Option<Theme>) -> Self {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let on_terminal = (stdout.is_terminal(), stderr.is_terminal());
        let inline = format == TranscriptFormat::Result || on_terminal == (true, true);
        let draws = theme.is_some();
        let status_line = format != TranscriptFormat::Json && on_terminal.1 && draws;
        let colors = if draws { terminal::stderr_colors() } else { Colors::Off };
        let live = (status_line && terminal::may_draw()).then(|| {
            let style = match format {
                TranscriptFormat::Text => AnswerStyle::Markdown,
                TranscriptFormat::Result | TranscriptFormat::Json => AnswerStyle::Plain,
            };
            let output: Box<dyn Write + Send> = match (on_terminal.0, format) {
                (true, TranscriptFormat::Text) => Box::new(std::io::stdout()),
                (true | false, _) => Box::new(std::io::stderr()),
            };
            LiveTerminal::new(output, theme.filter(|_| colors == Colors::On), style)
        });
        let options = TranscriptOptions {
            format,
            answers: match (&live, format) {
                (Some(live), _) if inline => live.answers(),
                (_, TranscriptFormat::Result) => Box::new(std::io::stderr()),
                (_, TranscriptFormat::Text | TranscriptFormat::Json) => Box::new(stdout),
            },
            notes: match &live {
                Some(live) => live.notes(),
                None => Box::new(stderr),
            },
            note_placement: if inline { NotePlacement::Inline } else { NotePlacement::Separate },
            destination: Destination::of(match format {
                TranscriptFormat::Result => on_terminal.1,
                TranscriptFormat::Text | TranscriptFormat::Json => on_terminal.0,
            }),
            status_line: status_line && live.is_none(),
            colors,
            prices,
        };
        Self { transcript: Transcript::new(options), live, hint: "", colors, is_plain: !draws }
    }

    pub(crate) fn has_status_line(&self) -> bool {
        self.live.is_some() || self.transcript.has_status_line()
    }

    pub(crate) fn colors(&self) -> Colors {
        self.colors
    }

    /// Whether nothing is drawn again: a question is lines of text.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
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
    pub(crate) fn tick(&mut self) -> Result<(), Failure> {
        let Some(live) = &self.live else {
            if self.hint.is_empty() {
                self.transcript.tick(terminal::width().saturating_sub(1));
            }
            return Ok(());
        };
        let status =
            if self.hint.is_empty() { self.transcript.activity_line() } else { String::new() };
        let rows = if terminal::may_draw() { LiveRows::Drawn } else { LiveRows::Absent };
        live.draw(&status, rows).map_err(|error| Failure::unwritable(&error))
    }

    /// Shows what the user types. The hint says what can be typed now.
    pub(crate) fn show_line(
        &mut self,
        input: &LineInput,
        hint: &'static str,
    ) -> Result<(), Failure> {
        self.hint = hint;
        let Some(live) = &self.live else { return Ok(()) };
        live.set_line(input, hint);
        self.tick()
    }

    /// Keeps what the user has sent on the screen. Otherwise the terminal has echoed it.
    pub(crate) fn sent(&self, text: &str) {
        if let Some(live) = &self.live {
            live.sent(text);
        }
    }

    /// Removes everything that is drawn again.
    pub(crate) fn clear(&self) {
        // The next write reports a terminal that is gone.
        let _ = self.live.as_ref().map(LiveTerminal::clear);
    }

    /// Draws everything again: another process had the terminal meanwhile.
    pub(crate) fn redraw(&self) {
        // The same.
        let _ = self.live.as_ref().map(LiveTerminal::forget);
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
        self.live = None;
    }
}
