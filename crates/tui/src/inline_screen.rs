//! The lower part of the terminal: a few live rows that are drawn again in place. Everything finished is written above
//! them as plain lines and belongs to the terminal's own scrollback.
//!
//! Nothing is written with scroll regions: new lines scroll the whole screen, so that no terminal loses them. Each frame
//! is one write between the marks of a synchronized update, and only rows that changed are written.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui_core::text::Line;

use crate::sgr;
use crate::wrap::wrap;

/// Whether styles are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styles {
    On,
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
}

impl<W: Write> InlineScreen<W> {
    pub(crate) fn new(output: W, styles: Styles, size: Size) -> Self {
        Self { output, styles, size, rows: Vec::new(), cursor_row: 0 }
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
        if size == self.size {
            return;
        }
        let reflowed = |rows: &[(String, usize)]| -> usize {
            rows.iter().map(|(_, width)| width.div_ceil(size.columns).max(1)).sum()
        };
        let above = reflowed(&self.rows[..self.cursor_row.min(self.rows.len())]);
        self.size = size;
        // Nothing that is on the screen counts: all rows are written again.
        self.rows = vec![(String::new(), usize::MAX); above.min(size.rows.saturating_sub(1)) + 1];
        self.cursor_row = self.rows.len() - 1;
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
        if finished.is_empty() {
            self.changed_rows(&rows, &mut frame);
        } else {
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

    /// Removes the live rows. The cursor stands where they began.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let mut frame = String::new();
        self.to_top(&mut frame);
        frame.push_str("\x1b[J\x1b[?25h");
        self.rows.clear();
        self.cursor_row = 0;
        self.output.write_all(frame.as_bytes())?;
        self.output.flush()
    }

    fn to_top(&self, frame: &mut String) {
        if self.cursor_row > 0 {
            move_by(frame, self.cursor_row, 'A');
        }
        frame.push('\r');
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
        let text = match self.styles {
            Styles::On => sgr::encode(line),
            Styles::Off => sgr::plain(line),
        };
        (text, line.width())
    }
}

/// Moves the cursor of the terminal.
fn move_by(frame: &mut String, count: usize, direction: char) {
    // A write to a string does not fail.
    let _ = write!(frame, "\x1b[{count}{direction}");
}

#[cfg(test)]
mod tests;
