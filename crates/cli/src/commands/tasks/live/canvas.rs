//! A few lines of a terminal that are drawn again in place. While it is there the cursor is hidden and
//! long lines are cut by the terminal; dropping it puts both right again.

use std::io::Write;

use crate::commands::tasks::drawing::{Fold, shown};
use crate::failure::Failure;
use crate::watch::Family;

/// How many tasks side by side are tried, until everything fits on the terminal.
const FOLDS: [usize; 5] = [12, 6, 3, 1, 0];

/// Rows where the size of the terminal is not known.
const ROWS: usize = 24;

/// The lines on the terminal.
pub(in crate::commands) struct Canvas {
    drawn: Vec<String>,
}

impl Canvas {
    pub(in crate::commands) fn new() -> Self {
        // What cannot be written now is noticed with the first line.
        let _ = write("\x1b[?25l\x1b[?7l");
        Self { drawn: Vec::new() }
    }

    /// As much of a tree as there is room for, and no more than `most`.
    pub(super) fn fitting(family: &Family, most: Fold) -> Fold {
        // A line with a sum below each task, at most, and two at the end.
        let fits = |fold: &Fold| 2 * shown(family, *fold).len() + 2 < rows();
        let less = |fold: &Fold| match (most, fold) {
            (Fold::Beyond(most), Fold::Beyond(least)) => least <= &most,
            (Fold::Nothing, _) | (_, Fold::Nothing) => true,
        };
        let folds = FOLDS.map(Fold::Beyond);
        let mut folds = [most].into_iter().chain(folds.into_iter().filter(less));
        folds.find(fits).unwrap_or(Fold::Beyond(0))
    }

    /// Puts these lines in place of those that are there, if they differ.
    pub(in crate::commands) fn draw(&mut self, mut lines: Vec<String>) -> Result<(), Failure> {
        let room = rows().saturating_sub(1).max(1);
        if lines.len() > room {
            let left_out = lines.len() - room + 1;
            let total = lines.pop();
            lines.truncate(room.saturating_sub(2));
            lines.push(format!("… {left_out} more lines: see `antiphon tasks tree`"));
            lines.extend(total);
        }
        if lines == self.drawn {
            return Ok(());
        }
        let text: String = lines.iter().flat_map(|line| [line, "\r\n"]).collect();
        write(&format!("{}{text}", self.back()))?;
        self.drawn = lines;
        Ok(())
    }

    /// Takes everything away.
    pub(in crate::commands) fn wipe(&mut self) -> Result<(), Failure> {
        let back = self.back();
        self.drawn.clear();
        write(&back)
    }

    /// To the first line, and everything from there on taken away.
    fn back(&self) -> String {
        match self.drawn.len() {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[0J"),
        }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        let _ = write("\x1b[?25h\x1b[?7h");
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::unwritable(&error))
}

fn rows() -> usize {
    crossterm::terminal::size().map_or(ROWS, |(_, rows)| usize::from(rows)).max(4)
}
