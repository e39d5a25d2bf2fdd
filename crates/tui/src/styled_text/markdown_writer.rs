//! The answers of a model, formatted as in the terminal program, for a command that shows one task: finished blocks are
//! plain lines in the scrollback, and a few live rows beneath them hold the last block, the status and the line that a
//! person types.
//!
//! What is typed and what is written therefore never mix. In the background of a shell there are no live rows: finished
//! lines are written, and nothing is drawn again.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_project::settings::Theme;
use antiphon_view::text::{fit, one_line};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::answer::Answer;
use crate::composer::{Composer, ComposerView};
use crate::document::prompt_lines;
use crate::inline_screen::{Cursor, InlineScreen, Size, Styles};
use crate::line_input::LineInput;
use crate::markdown::expand_tabs;
use crate::sgr;
use crate::wrap::wrap;

/// Shortest time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(16);

/// Rows of the line that is typed. A longer one scrolls.
const LINE_ROWS_MAX: usize = 3;

/// Bytes of a plain line that is drawn as it arrives. A longer one is finished in parts.
const PLAIN_BYTES_MAX: usize = 16 * 1024;

/// How answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStyle {
    /// Formatted.
    Markdown,
    /// As they are.
    Plain,
}

/// Whether rows may be drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveRows {
    /// The process is in the foreground.
    Drawn,
    /// The terminal is another process's now.
    Absent,
}

/// A terminal with live rows at its lower end. They are removed when this is dropped.
pub struct LiveTerminal {
    state: Arc<Mutex<State>>,
}

struct State {
    screen: InlineScreen<Box<dyn Write + Send>>,
    style: AnswerStyle,
    answer: Answer,
    /// The last line of a plain answer.
    plain: String,
    finished: Vec<Line<'static>>,
    status: String,
    line: Option<Composer>,
    hint: String,
    live_rows: LiveRows,
    drawn: Instant,
}

impl LiveTerminal {
    /// Nothing is written until something is shown. Without a theme it has no colors.
    pub fn new(output: Box<dyn Write + Send>, theme: Option<Theme>, style: AnswerStyle) -> Self {
        let styles = theme.map_or(Styles::Off, Styles::In);
        let state = State {
            screen: InlineScreen::new(output, styles, size()),
            style,
            answer: Answer::default(),
            plain: String::new(),
            finished: Vec::new(),
            status: String::new(),
            line: None,
            hint: String::new(),
            live_rows: LiveRows::Drawn,
            drawn: Instant::now(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Gets the text of answers.
    pub fn answers(&self) -> Box<dyn Write + Send> {
        Box::new(AnswerWriter(Arc::clone(&self.state)))
    }

    /// Gets whole lines, whose only escape sequences are colors.
    pub fn notes(&self) -> Box<dyn Write + Send> {
        Box::new(NoteWriter(Arc::clone(&self.state)))
    }

    /// Draws the live rows with this status.
    pub fn draw(&self, status: &str, live_rows: LiveRows) -> io::Result<()> {
        let mut state = self.state();
        status.clone_into(&mut state.status);
        if std::mem::replace(&mut state.live_rows, live_rows) != live_rows {
            // The other process has written to the terminal meanwhile.
            state.screen.forget();
        }
        state.draw()
    }

    /// The next frame shows the line that is typed. `hint` stands where it is empty; without one, an empty line is not
    /// shown.
    pub fn set_line(&self, input: &LineInput, hint: &str) {
        let mut state = self.state();
        state.line = (!input.is_empty() || !hint.is_empty()).then(|| input.composer().clone());
        hint.clone_into(&mut state.hint);
    }

    /// Writes what was sent into the scrollback.
    pub fn sent(&self, text: &str) {
        let mut state = self.state();
        state.finish_answer();
        let lines = prompt_lines(text, state.width());
        state.finished.extend(lines);
    }

    /// Writes all that is not written, and removes the live rows. The cursor stands at the beginning of a row.
    pub fn clear(&self) -> io::Result<()> {
        let mut state = self.state();
        state.finish_answer();
        state.clear()
    }

    /// The terminal may have another mode and other contents than this knows.
    pub fn forget(&self) -> io::Result<()> {
        let mut state = self.state();
        state.screen.forget();
        state.draw()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        // A terminal that is gone has no rows.
        let _ = self.clear();
        // What is written from now on is written at once.
        self.state().live_rows = LiveRows::Absent;
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn size() -> Size {
    Size::of(crossterm::terminal::size().unwrap_or((0, 0)))
}

impl State {
    fn width(&self) -> usize {
        self.screen.size().columns
    }

    fn finish_answer(&mut self) {
        let width = self.width();
        self.finished.extend(self.answer.finish(width));
        let plain = std::mem::take(&mut self.plain);
        if !plain.is_empty() {
            self.plain_line(&plain);
        }
    }

    fn plain_line(&mut self, line: &str) {
        let line = Line::raw(expand_tabs(line));
        self.finished.extend(wrap(&line, self.width(), 0));
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        match self.style {
            AnswerStyle::Markdown => {
                let width = self.width();
                self.finished.extend(self.answer.push(text, width));
            }
            AnswerStyle::Plain => {
                self.plain.push_str(text);
                while let Some(length) = self.plain.find('\n') {
                    let line: String = self.plain.drain(..=length).collect();
                    self.plain_line(line.trim_end_matches('\n'));
                }
                if self.plain.len() > PLAIN_BYTES_MAX {
                    let line = std::mem::take(&mut self.plain);
                    self.plain_line(&line);
                }
            }
        }
        self.draw_if_due()
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.finish_answer();
        let width = self.width();
        for line in text.lines() {
            self.finished.extend(wrap(&sgr::decode(&expand_tabs(line)), width, 2));
        }
        self.draw_if_due()
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let is_early = self.live_rows == LiveRows::Drawn && self.drawn.elapsed() < FRAME;
        if is_early { Ok(()) } else { self.draw() }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.screen.resize(size());
        self.drawn = Instant::now();
        if self.live_rows == LiveRows::Absent {
            let finished = std::mem::take(&mut self.finished);
            return self.screen.write_lines(&finished);
        }
        let (rows, cursor) = self.rows();
        let finished = std::mem::take(&mut self.finished);
        self.screen.draw(&finished, &rows, cursor)
    }

    /// Live rows, and the cursor among them.
    fn rows(&mut self) -> (Vec<Line<'static>>, Cursor) {
        let (width, rows_max) = (self.width(), self.screen.live_rows_max());
        let mut rows = if self.answer.is_live() {
            self.answer.live_lines(width)
        } else if self.plain.is_empty() {
            Vec::new()
        } else {
            wrap(&Line::raw(expand_tabs(&self.plain)), width, 0)
        };
        let line = self.line.as_ref().map(|line| {
            let view = ComposerView::new(line, width);
            view.lines(LINE_ROWS_MAX.min(rows_max / 2), &self.hint)
        });
        let dim = Style::new().add_modifier(Modifier::DIM);
        let status = fit(&one_line(&self.status), width.saturating_sub(1));
        let status = (!status.is_empty()).then(|| Line::styled(status, dim));
        let below = line.as_ref().map_or(0, |(lines, _)| lines.len());
        let free = rows_max.saturating_sub(below + usize::from(status.is_some()));
        // The end of what is written is the newest.
        let first = rows.len().saturating_sub(free);
        rows.drain(..first);
        rows.extend(status);
        let Some((lines, mut cursor)) = line else {
            let row = rows.len().saturating_sub(1);
            let column = rows.last().map_or(0, Line::width);
            return (rows, Cursor { row, column });
        };
        cursor.row += rows.len();
        rows.extend(lines);
        (rows, cursor)
    }

    fn clear(&mut self) -> io::Result<()> {
        let finished = std::mem::take(&mut self.finished);
        if self.live_rows == LiveRows::Absent {
            return self.screen.write_lines(&finished);
        }
        if !finished.is_empty() {
            self.screen.draw(&finished, &[], Cursor { row: 0, column: 0 })?;
        }
        self.screen.clear()
    }
}

/// Text of answers.
struct AnswerWriter(Arc<Mutex<State>>);

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).answer(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines about the task.
struct NoteWriter(Arc<Mutex<State>>);

impl Write for NoteWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).note(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
