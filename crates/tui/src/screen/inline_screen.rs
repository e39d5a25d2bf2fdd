//! The lower part of the terminal: a few live rows that are drawn again in place. Everything finished is written above
//! them as plain lines and belongs to the terminal's own scrollback.
//!
//! Nothing is written with scroll regions: new lines scroll the whole screen, so that no terminal loses them. Each frame
//! is one write between the marks of a synchronized update, and only rows that changed are written.

use std::fmt::Write as _;
use std::io::{self, Write};

use antiphon_project::settings::Theme;
use ratatui_core::text::Line;

use crate::sgr;
use crate::wrap::wrap;

/// Whether styles are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styles {
    In(Theme),
    Off,
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// What a terminal says about itself, within bounds.
    pub(crate) fn of((columns, rows): (u16, u16)) -> Self {
        let columns = if columns == 0 { 80 } else { usize::from(columns) };
        let rows = if rows == 0 { 24 } else { usize::from(rows) };
        Self { columns: columns.clamp(10, 500), rows: rows.clamp(4, 300) }
    }
}

/// Where the cursor stands, from the top left of the live rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// What the terminal shows at its lower end.
pub(crate) struct InlineScreen<W> {
    output: W,
    styles: Styles,
    size: Size,
    /// The live rows, as they were written, with their widths.
    rows: Vec<(String, usize)>,
    /// Row of the terminal's cursor among the live rows.
    cursor_row: usize,
    /// The terminal may have moved and broken the live rows: all of them are written again.
    is_stale: bool,
    /// The rows of the alternate screen, while it is shown.
    overlay: Option<Vec<String>>,
}

impl<W: Write> InlineScreen<W> {
    /// Draws everything from now on in another way.
    pub(crate) fn set_styles(&mut self, styles: Styles) {
        self.styles = styles;
        self.redraw();
    }

    pub(crate) fn new(output: W, styles: Styles, size: Size) -> Self {
        Self {
            output,
            styles,
            size,
            rows: Vec::new(),
            cursor_row: 0,
            is_stale: false,
            overlay: None,
        }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Rows that the live part may take.
    pub(crate) fn live_rows_max(&self) -> usize {
        self.size.rows - 1
    }

    /// The terminal has another size. Terminals break long rows anew, so the live rows take another number of them.
    pub(crate) fn resize(&mut self, size: Size) {
        self.is_stale |= size != self.size;
        self.size = size;
        if let Some(rows) = &mut self.overlay {
            rows.clear();
        }
    }

    /// Something else may have written to the terminal: every row is written again.
    pub(crate) fn redraw(&mut self) {
        self.is_stale = true;
        if let Some(rows) = &mut self.overlay {
            rows.clear();
        }
    }

    /// Something else was written below the live rows, which belong to the scrollback now.
    pub(crate) fn forget(&mut self) {
        self.rows.clear();
        (self.cursor_row, self.is_stale, self.overlay) = (0, true, None);
    }

    /// Shows rows on the alternate screen, which hides everything else until [`close_overlay`](Self::close_overlay).
    pub(crate) fn draw_overlay(&mut self, rows: &[Line<'_>]) -> io::Result<()> {
        let mut frame = String::from("\x1b[?2026h");
        let shown = self.overlay.get_or_insert_with(|| {
            frame.push_str("\x1b[?1049h\x1b[?25l");
            Vec::new()
        });
        if shown.is_empty() {
            frame.push_str("\x1b[2J");
        }
        let mut texts = Vec::with_capacity(rows.len());
        for (index, line) in rows.iter().take(self.size.rows).enumerate() {
            let line = wrap(line, self.size.columns, 0).into_iter().next().unwrap_or_default();
            let text = styled(self.styles, &line);
            if shown.get(index) != Some(&text) {
                // A write to a string does not fail.
                let _ = write!(frame, "\x1b[{};1H\x1b[2K{text}", index + 1);
            }
            texts.push(text);
        }
        *shown = texts;
        frame.push_str("\x1b[?2026l");
        self.output.write_all(frame.as_bytes())?;
        self.output.flush()
    }

    /// Shows the screen as it was.
    pub(crate) fn close_overlay(&mut self) -> io::Result<()> {
        if self.overlay.take().is_some() {
            self.output.write_all(b"\x1b[?1049l\x1b[?25h")?;
            self.output.flush()?;
        }
        Ok(())
    }

    /// Writes finished lines above the live rows, and the live rows.
    pub(crate) fn draw(
        &mut self,
        finished: &[Line<'_>],
        live: &[Line<'_>],
        cursor: Cursor,
    ) -> io::Result<()> {
        let live = &live[..live.len().min(self.live_rows_max())];
        // A row that is too wide would take two, and the next frame would begin at the wrong one.
        let cut = |line| wrap(line, self.size.columns, 0).into_iter().next().unwrap_or_default();
        let rows: Vec<(String, usize)> = live.iter().map(|line| self.row(&cut(line))).collect();
        let mut frame = String::from("\x1b[?2026h\x1b[?25l");
        self.to_top(&mut frame);
        if finished.is_empty() && !std::mem::take(&mut self.is_stale) {
            self.changed_rows(&rows, &mut frame);
        } else {
            self.is_stale = false;
            frame.push_str("\x1b[J");
            for line in finished {
                frame.push_str(&self.row(line).0);
                frame.push_str("\r\n");
            }
            let texts: Vec<&str> = rows.iter().map(|(text, _)| text.as_str()).collect();
            frame.push_str(&texts.join("\r\n"));
        }
        let last = rows.len().saturating_sub(1);
        let row = cursor.row.min(last);
        if row < last {
            move_by(&mut frame, last - row, 'A');
        }
        frame.push('\r');
        if cursor.column > 0 {
            move_by(&mut frame, cursor.column.min(self.size.columns - 1), 'C');
        }
        frame.push_str("\x1b[?25h\x1b[?2026l");
        (self.rows, self.cursor_row) = (rows, row);
        self.output.write_all(frame.as_bytes())?;
        self.output.flush()
    }

    /// Writes a sequence that moves nothing on the screen.
    pub(crate) fn write_sequence(&mut self, sequence: &str) -> io::Result<()> {
        self.output.write_all(sequence.as_bytes())?;
        self.output.flush()
    }

    /// Writes finished lines where the cursor is, and draws nothing.
    pub(crate) fn write_lines(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        let text: String = lines.iter().map(|line| self.row(line).0 + "\r\n").collect();
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }

    /// Removes the live rows. The cursor stands where they began.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let mut frame = String::new();
        if self.overlay.take().is_some() {
            frame.push_str("\x1b[?1049l");
        }
        self.to_top(&mut frame);
        frame.push_str("\x1b[J\x1b[?25h");
        self.rows.clear();
        (self.cursor_row, self.is_stale) = (0, false);
        self.output.write_all(frame.as_bytes())?;
        self.output.flush()
    }

    fn to_top(&self, frame: &mut String) {
        let above = if self.is_stale { self.reflowed_above() } else { self.cursor_row };
        if above > 0 {
            move_by(frame, above, 'A');
        }
        frame.push('\r');
    }

    /// Rows above the cursor that the live rows take after the terminal broke them anew.
    fn reflowed_above(&self) -> usize {
        let above = &self.rows[..self.cursor_row.min(self.rows.len())];
        let rows = above.iter().map(|(_, width)| width.div_ceil(self.size.columns).max(1));
        rows.sum::<usize>().min(self.size.rows.saturating_sub(1))
    }

    /// Rewrites the rows that differ from those on the screen. The cursor ends at the last row.
    fn changed_rows(&self, rows: &[(String, usize)], frame: &mut String) {
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                frame.push_str("\r\n");
            }
            if self.rows.get(index) != Some(row) {
                frame.push_str(&row.0);
                // Behind the text: erasing first would flicker where updates are not synchronized.
                frame.push_str(if row.1 < self.size.columns { "\x1b[K" } else { "" });
            }
        }
        if rows.len() < self.rows.len() {
            frame.push_str(if rows.is_empty() { "\x1b[J" } else { "\r\n\x1b[J\x1b[1A" });
        }
    }

    fn row(&self, line: &Line<'_>) -> (String, usize) {
        (styled(self.styles, line), line.width())
    }
}

fn styled(styles: Styles, line: &Line<'_>) -> String {
    match styles {
        Styles::In(theme) => sgr::encode(line, theme),
        Styles::Off => sgr::plain(line),
    }
}

/// Moves the cursor of the terminal.
fn move_by(frame: &mut String, count: usize, direction: char) {
    // A write to a string does not fail.
    let _ = write!(frame, "\x1b[{count}{direction}");
}

#[cfg(test)]
mod tests;
